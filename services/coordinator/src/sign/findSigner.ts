import type { Hex } from '@countersign/protocol'
import { hashSid, notAuthenticated, sessionExpired } from '../auth/session.ts'
import { CoordinatorError } from '../errors.ts'
import type { Clock, Store } from '../ports.ts'
import type { Signer } from '../store/types.ts'
import { createGatherer } from './gather.ts'

export type SignerFinder = {
  /** Throws `not_authenticated`, `session_expired` or `key_binding_mismatch`. */
  find(asked: { sid: string | undefined; digest: Hex | undefined }): Promise<Signer & { sid: string }>
}

const LIMIT = 256
const SLOTS = 2

/**
 * Step 1 of signing: whose session it is, and which key. Requests that come while two lookups are under way share the next. Unlike
 * signings, equal ones do not share an answer that is already on its way: it could be older than a sign-out.
 */
export function createSignerFinder(deps: {
  store: Pick<Store, 'findSigners'>
  clock: Clock
  sessionIdleMs: number
}): SignerFinder {
  const { store, clock, sessionIdleMs: idleMs } = deps
  const gatherer = createGatherer<{ sidHash: string; digest: Hex | undefined }, Signer>({
    async run(asked, { answer }) {
      const found = await store.findSigners({ asked, now: clock.now(), idleMs })
      for (const [index, request] of asked.entries()) {
        const signer = found[index]
        if (typeof signer === 'object') answer(request, { status: 'fulfilled', value: signer })
        else answer(request, { status: 'rejected', reason: toError(signer) })
      }
    },
    limit: LIMIT,
    slots: SLOTS,
  })
  return {
    async find({ sid, digest }) {
      if (sid === undefined) throw notAuthenticated()
      return { sid, ...(await gatherer.add({ sidHash: hashSid(sid), digest })) }
    },
  }
}

function toError(found: 'expired' | 'key_binding_mismatch' | undefined): CoordinatorError {
  if (found === undefined) return notAuthenticated()
  if (found === 'expired') return sessionExpired()
  return new CoordinatorError('key_binding_mismatch', 'the key does not belong to this user')
}
