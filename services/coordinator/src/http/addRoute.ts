import type { Hono } from 'hono'
import { CoordinatorError } from '../errors.ts'
import type { AppContext, AppEnv } from './context.ts'
import type { RouteName } from './routes.ts'

export type HttpApp = Hono<AppEnv>

type Handle = (c: AppContext) => Response | Promise<Response>

export function addRoute(app: HttpApp, name: RouteName, handle: Handle): void {
  addRoutes(app, { [name]: handle })
}

/** Adds the routes of one path. Other methods on it are refused here, before a later pattern can match the path too. */
export function addRoutes(app: HttpApp, handlers: { [Name in RouteName]?: Handle }): void {
  const allowed: string[] = []
  let path = ''
  for (const [name, handle] of Object.entries(handlers)) {
    const [method = '', route = ''] = name.split(' ')
    path = route
    app.on(method, path, (c) => {
      c.set('route', path)
      return handle(c)
    })
    allowed.push(method === 'GET' ? 'GET, HEAD' : method)
  }
  app.all(path, (c) => {
    c.set('route', path)
    c.header('allow', allowed.join(', '))
    throw new CoordinatorError('method_not_allowed', 'the method is not allowed here')
  })
}
