import type { OpenAPIHono } from '@hono/zod-openapi'
import { CoordinatorError } from '../errors.ts'
import type { AppContext, AppEnv } from './context.ts'
import type { Route } from './routes.ts'

export type HttpApp = OpenAPIHono<AppEnv>

/**
 * Adds a route to the app and to its OpenAPI document. Other methods on the same path are refused here, before a later pattern
 * can match the path too.
 */
export function addRoute(app: HttpApp, route: Route, handle: (c: AppContext) => Response | Promise<Response>): void {
  const path = route.getRoutingPath()
  app.openAPIRegistry.registerPath(route)
  app.on(route.method.toUpperCase(), path, (c) => {
    c.set('route', path)
    return handle(c)
  })
  app.all(path, (c) => {
    c.set('route', path)
    c.header('allow', route.method === 'get' ? 'GET, HEAD' : route.method.toUpperCase())
    throw new CoordinatorError('method_not_allowed', 'the method is not allowed here')
  })
}
