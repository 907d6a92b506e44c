import type { Hex } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { Store } from '../store/openStore.ts'
import type { Clock } from '../system.ts'

export type SignQuota = {
  /** Runs a signing if the user is within the quota. Otherwise calls `onRefused` and throws `quota_spent`. */
  run<Result>(
    /** Concurrent requests for the same digest and wallet count as one signature. A request without a digest always counts. */
    parameters: {
      userId: string
      walletId: string
      digest: Hex | undefined
      onRefused(retryAfterS: number): void
    },
    sign: () => Promise<Result>,
  ): Promise<Result>
}

/** Identifies a signature in progress. */
type Key = string | symbol

/** A signature in progress, for one or several requests. */
type PendingSignature = { requests: number; retryAfterMs: Promise<number>; over: Promise<void>; end(): void }

const DAY_MS = 86_400_000

/**
 * Limits the new signatures of a user, over all wallets, in any 24 hours. The database counts them, so a restart or another sign-in doesn't
 * reset the limit. Signatures that this process has in progress count too; those of other processes count once stored.
 */
export function createSignQuota(deps: {
  store: Pick<Store, 'findSignedAt'>
  clock: Clock
  perDay: number | undefined
}): SignQuota {
  const { store, clock, perDay } = deps
  return perDay === undefined ? { run: (_, sign) => sign() } : createLimited({ store, clock, perDay })
}

function createLimited(deps: { store: Pick<Store, 'findSignedAt'>; clock: Clock; perDay: number }): SignQuota {
  const { store, clock, perDay } = deps
  /** By user and key, in the order of requests. */
  const users = new Map<string, Map<Key, PendingSignature>>()

  /** Returns 0 if one more signature is allowed next to the given number in progress. */
  async function findRetryAfterMs(userId: string, beside: number): Promise<number> {
    if (beside >= perDay) return DAY_MS
    // The oldest signature within the last 24 hours that would exceed the quota.
    const signedAt = await store.findSignedAt({ userId, position: perDay - beside })
    return signedAt === undefined ? 0 : Math.max(0, signedAt + DAY_MS - clock.now())
  }

  /**
   * Waits for signatures in progress instead of rejecting because of them: one may fail, or be stored meanwhile and be counted twice. Then
   * queries the database again.
   */
  async function admit(userId: string, key: Key, ofUser: ReadonlyMap<Key, PendingSignature>): Promise<number> {
    for (;;) {
      const earlier = [...ofUser.values()].slice(0, [...ofUser.keys()].indexOf(key))
      const retryAfterMs = await findRetryAfterMs(userId, earlier.length)
      if (retryAfterMs === 0 || earlier.length === 0) return retryAfterMs
      await Promise.race(earlier.map(({ over }) => over))
    }
  }

  /** Requests for the same signature share one place in the quota. */
  function ask(userId: string, key: Key): PendingSignature {
    const ofUser = users.get(userId) ?? new Map<Key, PendingSignature>()
    users.set(userId, ofUser)
    const known = ofUser.get(key)
    if (known !== undefined) {
      known.requests += 1
      return known
    }
    let end = () => {}
    const over = new Promise<void>((resolve) => (end = resolve))
    const pending: PendingSignature = { requests: 1, over, end, retryAfterMs: Promise.resolve(0) }
    ofUser.set(key, pending)
    pending.retryAfterMs = admit(userId, key, ofUser)
    return pending
  }

  function leave(userId: string, key: Key, pending: PendingSignature) {
    pending.requests -= 1
    if (pending.requests > 0) return
    const ofUser = users.get(userId)
    ofUser?.delete(key)
    if (ofUser?.size === 0) users.delete(userId)
    pending.end()
  }

  return {
    async run({ userId, walletId, digest, onRefused }, sign) {
      const key = digest === undefined ? Symbol('off-chain') : `${walletId} ${digest}`
      const pending = ask(userId, key)
      try {
        const retryAfterMs = await pending.retryAfterMs
        if (retryAfterMs > 0) {
          onRefused(Math.ceil(retryAfterMs / 1000))
          throw new CoordinatorError('quota_spent', 'the quota of signatures is spent', {
            details: `${perDay} signatures in 24 hours`,
          })
        }
        return await sign()
      } finally {
        leave(userId, key, pending)
      }
    },
  }
}
