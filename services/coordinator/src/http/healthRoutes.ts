import type { EndpointResponse } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import { type GetAttestationDeps, getAttestation } from '../health/getAttestation.ts'
import type { LogKeeper, Store } from '../ports.ts'
import { addRoute, type HttpApp } from './addRoute.ts'
import { type Limiters, limit } from './limiters.ts'
import { routes } from './routes.ts'

export type HealthRoutesDeps = GetAttestationDeps & {
  store: Pick<Store, 'ping'>
  /** Where enclaves have a log. */
  keeper?: Pick<LogKeeper, 'findMissing' | 'isOpen'>
  limiters: Limiters
}

export function registerHealthRoutes(app: HttpApp, deps: HealthRoutesDeps): void {
  const mode = deps.selfReport.mode === 'mock' ? { mode: 'mock' as const } : {}

  addRoute(app, routes['GET /health'], (c) => {
    const body: EndpointResponse<'GET /health'> = { status: 'ok', ...mode }
    return c.json(body)
  })

  addRoute(app, routes['GET /health/ready'], async (c) => {
    await ping(deps.store)
    await getAttestation(deps, { nonce: undefined })
    const missing = findMissing(deps.keeper)
    const body: EndpointResponse<'GET /health/ready'> = {
      status: 'ready',
      ...mode,
      ...(missing.length === 0 ? {} : { missing: [...missing] }),
    }
    return c.json(body)
  })

  addRoute(app, routes['GET /health/attestation'], async (c) => {
    limit(c, deps.limiters.proof, `attestation:${c.get('clientAddress')}`)
    return c.json(await getAttestation(deps, { nonce: c.req.query('nonce') }))
  })
}

/** What operators should look after. Throws `log_unavailable` where nothing can be signed because of it. */
function findMissing(keeper: HealthRoutesDeps['keeper']): readonly string[] {
  const missing = keeper?.findMissing() ?? []
  if (keeper === undefined || keeper.isOpen()) return missing
  throw new CoordinatorError('log_unavailable', 'too few witnesses cosign', {
    details: `missing: ${missing.join(', ')}`,
  })
}

async function ping(store: Pick<Store, 'ping'>): Promise<void> {
  try {
    await store.ping()
  } catch (error) {
    throw new CoordinatorError('database_unavailable', 'the database cannot be reached', { cause: error })
  }
}
