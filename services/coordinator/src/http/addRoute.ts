import type { OpenAPIHono } from '@hono/zod-openapi'
import { CoordinatorError } from '../errors.ts'
import type { AppContext, AppEnv } from './context.ts'
import type { Route } from './routes.ts'

export type HttpApp = OpenAPIHono<AppEnv>

type Handle = (c: AppContext) => Response | Promise<Response>

/** Adds a route to the app and to its OpenAPI document. */
export function addRoute(app: HttpApp, route: Route, handle: Handle): void {
  addRoutes(app, [{ route, handle }])
}

/** Adds the routes of one path. Other methods on it are refused here, before a later pattern can match the path too. */
export function addRoutes(
  app: HttpApp,
  entries: readonly [{ route: Route; handle: Handle }, ...{ route: Route; handle: Handle }[]],
): void {
  const path = entries[0].route.getRoutingPath()
  for (const { route, handle } of entries) {
    app.openAPIRegistry.registerPath(route)
    app.on(route.method.toUpperCase(), path, (c) => {
      c.set('route', path)
      return handle(c)
    })
  }
  const allowed = entries.map(({ route }) => (route.method === 'get' ? 'GET, HEAD' : route.method.toUpperCase()))
  app.all(path, (c) => {
    c.set('route', path)
    c.header('allow', allowed.join(', '))
    throw new CoordinatorError('method_not_allowed', 'the method is not allowed here')
  })
}
