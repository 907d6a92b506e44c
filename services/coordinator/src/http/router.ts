import { CoordinatorError } from '../errors.ts'
import type { AppContext, HandlerResponse } from './context.ts'
import type { RouteName } from './routes.ts'

type Handle = (c: AppContext) => HandlerResponse | Promise<HandlerResponse>

export type Handlers = Map<RouteName, Handle>

type PathRoutes = {
  path: string
  prefix: string
  names: readonly string[]
  pattern: RegExp
  byMethod: Map<string, Handle>
}

/** Calls the handler of a request. Paths without parameters match first. If the matching path lacks the method, no other path is tried. */
export function createRouter(handlers: Handlers): Handle {
  const all = new Map<string, PathRoutes>()
  for (const [name, handle] of handlers) {
    const [method = '', path = ''] = name.split(' ')
    const found = all.get(path) ?? toPathRoutes(path)
    all.set(path, found)
    found.byMethod.set(method, handle)
  }
  const patterns = [...all.values()].filter(({ names }) => names.length > 0)

  function findPattern(c: AppContext): PathRoutes | undefined {
    for (const one of patterns) {
      if (!c.req.path.startsWith(one.prefix)) continue
      const values = one.pattern.exec(c.req.path)
      if (values === null) continue
      const params: Record<string, string> = {}
      for (const [index, name] of one.names.entries()) params[name] = decode(values[index + 1] as string)
      c.params = params
      return one
    }
    return undefined
  }

  return (c) => {
    const { method, path } = c.req
    const found = all.get(path) ?? findPattern(c)
    if (found === undefined) throw new CoordinatorError('not_found', 'no such path')
    c.route = found.path
    const handle = found.byMethod.get(method === 'HEAD' ? 'GET' : method)
    if (handle === undefined) {
      const allowed = [...found.byMethod.keys()].map((one) => (one === 'GET' ? 'GET, HEAD' : one))
      c.header('allow', allowed.join(', '))
      throw new CoordinatorError('method_not_allowed', 'the method is not allowed here')
    }
    return handle(c)
  }
}

/** `:name` matches one segment, `:name{.+}` one or more. */
function toPathRoutes(path: string): PathRoutes {
  const parameters = [...path.matchAll(/:(\w+)(\{\.\+\})?/g)]
  const source = parameters.reduce((text, [all, , more]) => text.replace(all, more ? '(.+)' : '([^/]+)'), path)
  return {
    path,
    prefix: path.split(':', 1).join(),
    names: parameters.map(([, name = '']) => name),
    pattern: new RegExp(`^${source}$`),
    byMethod: new Map(),
  }
}

function decode(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
