import type { EndpointResponse } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { LogService } from '../log/logService.ts'
import { type GetAttestationDeps, getAttestation } from '../sign/enclave/health/getAttestation.ts'
import type { Store } from '../store/openStore.ts'
import { toQuery } from './context.ts'
import { type Limiters, limit } from './limiters.ts'
import type { Handlers } from './router.ts'

export type HealthRoutesDeps = GetAttestationDeps & {
  store: Pick<Store, 'ping'>
  /** Present if the enclaves have logs. */
  logService?: Pick<LogService, 'findMissing' | 'isOpen'>
  limiters: Limiters
}

export function registerHealthRoutes(handlers: Handlers, deps: HealthRoutesDeps): void {
  const mode = deps.selfReport.mode === 'mock' ? { mode: 'mock' as const } : {}

  handlers.set('GET /health', (c) => {
    const body: EndpointResponse<'GET /health'> = { status: 'ok', ...mode }
    return c.json(body)
  })

  handlers.set('GET /health/ready', async (c) => {
    const { refusal, missing } = await findMissing(deps)
    if (refusal !== undefined) {
      const { code, message, cause } = refusal
      throw new CoordinatorError(code, message, { details: `missing: ${missing.join(', ')}`, cause })
    }
    const body: EndpointResponse<'GET /health/ready'> = {
      status: 'ready',
      ...mode,
      ...(missing.length === 0 ? {} : { missing: [...missing] }),
    }
    return c.json(body)
  })

  handlers.set('GET /health/attestation', (c) => {
    limit(c, deps.limiters.proof, `attestation:${c.clientAddress}`)
    return c.json(getAttestation(deps, { nonce: toQuery(c.req).get('nonce') ?? undefined }))
  })
}

/** Returns the names of everything that needs the operator's attention, and the first reason that keeps the service from being ready. */
async function findMissing(
  deps: HealthRoutesDeps,
): Promise<{ refusal: CoordinatorError | undefined; missing: readonly string[] }> {
  const { logService } = deps
  const [database, attestation] = await Promise.all([
    findRefusal(() => ping(deps.store)),
    findRefusal(() => getAttestation(deps, { nonce: undefined })),
  ])
  const log =
    logService === undefined || logService.isOpen()
      ? undefined
      : new CoordinatorError('log_unavailable', 'too few witnesses cosign')
  const missing = [
    ...(database === undefined ? [] : ['database']),
    ...(attestation === undefined ? [] : ['attestation of the coordinator']),
    ...(logService?.findMissing() ?? []),
  ]
  return { refusal: database ?? attestation ?? log, missing }
}

async function findRefusal(ask: () => unknown): Promise<CoordinatorError | undefined> {
  try {
    await ask()
    return undefined
  } catch (error) {
    if (error instanceof CoordinatorError) return error
    throw error
  }
}

async function ping(store: Pick<Store, 'ping'>): Promise<void> {
  try {
    await store.ping()
  } catch (error) {
    throw new CoordinatorError('database_unavailable', 'the database is unreachable', { cause: error })
  }
}
