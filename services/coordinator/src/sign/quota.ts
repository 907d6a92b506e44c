import type { Hex } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { Store } from '../store/openStore.ts'
import type { Clock } from '../system.ts'

export type SignQuota = {
  /** Runs a signing of this user, if it is within the quota. Otherwise throws `quota_spent`, and calls `onRefused` before. */
  run<Result>(
    /** One digest of a wallet at once is one signature. Without a digest it is like no other. */
    parameters: {
      userId: string
      walletId: string
      digest: Hex | undefined
      onRefused(retryAfterS: number): void
    },
    sign: () => Promise<Result>,
  ): Promise<Result>
}

/** What a signature under way is known by. */
type Key = string | symbol

/** A signature that is being asked for, by one request or by several that want the same. */
type PendingSignature = { requests: number; retryAfterMs: Promise<number>; over: Promise<void>; end(): void }

const DAY_MS = 86_400_000

/**
 * So many new signatures of a user, by whichever wallet, in any 24 hours, counted in the database, so that neither a restart nor another sign-in
 * makes them more. What this process signs at the moment counts too; another process's counts once it is stored.
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
  /** By user and key, in the order of asking. */
  const users = new Map<string, Map<Key, PendingSignature>>()

  /** Zero where one more may be signed beside so many. */
  async function findRetryAfterMs(userId: string, beside: number): Promise<number> {
    if (beside >= perDay) return DAY_MS
    // The oldest that would be within the last 24 hours together with those.
    const signedAt = await store.findSignedAt({ userId, position: perDay - beside })
    return signedAt === undefined ? 0 : Math.max(0, signedAt + DAY_MS - clock.now())
  }

  /**
   * Nothing is refused for the sake of one that is under way: that one may fail, or be stored meanwhile and so be counted twice. It
   * is waited for, and the database asked again.
   */
  async function admit(userId: string, key: Key, ofUser: ReadonlyMap<Key, PendingSignature>): Promise<number> {
    for (;;) {
      const earlier = [...ofUser.values()].slice(0, [...ofUser.keys()].indexOf(key))
      const retryAfterMs = await findRetryAfterMs(userId, earlier.length)
      if (retryAfterMs === 0 || earlier.length === 0) return retryAfterMs
      await Promise.race(earlier.map(({ over }) => over))
    }
  }

  /** A request for what is asked for already shares its place: one signature answers both. */
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
    const asked: PendingSignature = { requests: 1, over, end, retryAfterMs: Promise.resolve(0) }
    ofUser.set(key, asked)
    asked.retryAfterMs = admit(userId, key, ofUser)
    return asked
  }

  function leave(userId: string, key: Key, asked: PendingSignature) {
    asked.requests -= 1
    if (asked.requests > 0) return
    const ofUser = users.get(userId)
    ofUser?.delete(key)
    if (ofUser?.size === 0) users.delete(userId)
    asked.end()
  }

  return {
    async run({ userId, walletId, digest, onRefused }, sign) {
      const key = digest === undefined ? Symbol('off-chain') : `${walletId} ${digest}`
      const asked = ask(userId, key)
      try {
        const retryAfterMs = await asked.retryAfterMs
        if (retryAfterMs > 0) {
          onRefused(Math.ceil(retryAfterMs / 1000))
          throw new CoordinatorError('quota_spent', 'the quota of signatures is spent', {
            details: `${perDay} signatures in 24 hours`,
          })
        }
        return await sign()
      } finally {
        leave(userId, key, asked)
      }
    },
  }
}
