import type { IncomingMessage, ServerResponse } from 'node:http'
import { MAX_BODY_BYTES } from '../bodyLimit.ts'
import type { RequestContext } from './context.ts'
import { type Guards, isNamedTwice } from './guards.ts'
import { PROBLEM_TYPE, type ProblemDeps, reportProblem } from './problem.ts'
import { endedEarly, parseJsonBody } from './readBody.ts'

/** What the handler of such a route gets. */
type DirectContext = RequestContext & {
  /** As `readJsonBody`. */
  readJson(): Promise<unknown>
}

/** Its headers are set through the context. `latin1` is for bodies that have a character for each byte. */
type DirectAnswer = { status: number; body: string | null; encoding?: 'latin1' }

/** A route of the app that is asked for so often that the way through the framework would cost more than the answer. */
export type DirectRoute = {
  method: 'GET' | 'POST'
  isPath(path: string): boolean
  /** The pattern of the route, for the log. */
  route: string
  handle(c: DirectContext): Promise<DirectAnswer>
}

/** Answers a request, or returns false and leaves it to the framework. */
export type DirectRoutes = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean

/** Hosts in which the framework finds no fault without a closer look. */
const PLAIN_HOST = /^[a-z0-9._-]+(?::(?:[1-5]\d{3,4}|[6-9]\d{3}))?$/

/**
 * Answers plain requests of some routes straight from Node's own request and response, with the guards, the limits and the problems of
 * all others. Whatever is unusual about a request goes through the framework, which has the same routes.
 */
export function createDirectRoutes(
  deps: ProblemDeps & { guards: Guards },
  routes: readonly DirectRoute[],
): DirectRoutes {
  const { guards } = deps

  async function answer(asked: DirectRoute, incoming: IncomingMessage, outgoing: ServerResponse) {
    const { method = '', url: path = '', headers } = incoming
    const own: Record<string, string> = {}
    const header = (name: string) => toText(headers[name])
    const req = { method, path, header }
    const begun = guards.begin(req, incoming)
    const c: DirectContext = {
      req,
      get: () => begun.clientAddress,
      header(name, value) {
        own[name.toLowerCase()] = value
      },
      readJson: async () => parseJsonBody(await readBytes(incoming), headers['content-type']),
    }
    // Unknown for what is not admitted, as it is to the framework.
    let route: string | undefined
    let answered: DirectAnswer & { failure?: ReturnType<typeof reportProblem>['code'] }
    try {
      guards.admit(c, incoming)
      route = asked.route
      answered = await asked.handle(c)
    } catch (error) {
      const problem = reportProblem(deps, { error, requestId: begun.requestId, route })
      Object.assign(own, { 'content-type': PROBLEM_TYPE, 'cache-control': 'no-store' })
      answered = { status: problem.status, body: JSON.stringify(problem), failure: problem.code }
    }
    guards.leave()
    const { status, body, encoding = 'utf8', failure } = answered
    const { defaults, fixed } = guards.end(req, begun, { route, status, failure })
    const vary = own.vary === undefined ? 'Origin' : `${own.vary}, Origin`
    const length = body !== null && { 'content-length': Buffer.byteLength(body, encoding) }
    outgoing.writeHead(status, { ...defaults, ...own, ...fixed, vary, ...length }).end(body, encoding)
  }

  return (incoming, outgoing) => {
    const route = routes.find(({ method, isPath }) => method === incoming.method && isPath(incoming.url ?? ''))
    if (route === undefined || !isPlain(incoming)) return false
    answer(route, incoming, outgoing).catch(() => outgoing.destroy())
    return true
  }
}

function isPlain({ method, headers, rawHeaders }: IncomingMessage): boolean {
  const { host = '', 'content-length': length, 'transfer-encoding': encoding } = headers
  if (!PLAIN_HOST.test(host) || encoding !== undefined) return false
  // Node reads the first of two, and the framework both.
  if (isNamedTwice(rawHeaders, 'content-type')) return false
  return method === 'GET' ? length === undefined : Number(length) <= MAX_BODY_BYTES
}

/** Only of `set-cookie`, which is for answers, are there several. */
const toText = (value: string | string[] | undefined) => (typeof value === 'string' ? value : undefined)

/** The server reads what was declared, and not a byte more. */
function readBytes(incoming: IncomingMessage): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    incoming.on('data', (chunk) => chunks.push(chunk))
    incoming.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks)))
    incoming.on('close', () => {
      if (!incoming.readableEnded) reject(endedEarly())
    })
  })
}
