import type { EndpointResponse } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import { type GetAttestationDeps, getAttestation } from '../health/getAttestation.ts'
import type { Store } from '../ports.ts'
import { addRoute, type HttpApp } from './addRoute.ts'
import { type Limiters, limit } from './limiters.ts'
import { routes } from './routes.ts'

export type HealthRoutesDeps = GetAttestationDeps & { store: Pick<Store, 'ping'>; limiters: Limiters }

export function registerHealthRoutes(app: HttpApp, deps: HealthRoutesDeps): void {
  addRoute(app, routes['GET /health'], (c) => {
    const body: EndpointResponse<'GET /health'> = { status: 'ok' }
    return c.json(body)
  })

  addRoute(app, routes['GET /health/ready'], async (c) => {
    await ping(deps.store)
    await getAttestation(deps, { nonce: undefined })
    const body: EndpointResponse<'GET /health/ready'> = { status: 'ready' }
    return c.json(body)
  })

  addRoute(app, routes['GET /health/attestation'], async (c) => {
    limit(c, deps.limiters.proof, `attestation:${c.get('clientAddress')}`)
    return c.json(await getAttestation(deps, { nonce: c.req.query('nonce') }))
  })
}

async function ping(store: Pick<Store, 'ping'>): Promise<void> {
  try {
    await store.ping()
  } catch (error) {
    throw new CoordinatorError('database_unavailable', 'the database cannot be reached', { cause: error })
  }
}
