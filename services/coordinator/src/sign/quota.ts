import type { Hex } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { Clock, Store } from '../ports.ts'

export type SignQuota = {
  /** Runs a signing of this wallet, if it is within the quota. Otherwise throws `quota_spent`, and calls `onRefused` before. */
  run<Result>(
    /** One digest at once is one signature. Without a digest it is like no other. */
    parameters: { walletId: string; digest: Hex | undefined; onRefused(retryAfterS: number): void },
    sign: () => Promise<Result>,
  ): Promise<Result>
}

/** What a signature under way is known by. */
type Key = Hex | symbol

/** A signature that is being asked for, by one request or by several that want the same. */
type Asked = { requests: number; retryAfterMs: Promise<number>; over: Promise<void>; end(): void }

const DAY_MS = 86_400_000

/**
 * So many new signatures of a wallet in any 24 hours, counted in the database, so that neither a restart nor another sign-in
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
  /** By wallet and key, in the order of asking. */
  const wallets = new Map<string, Map<Key, Asked>>()

  /** Zero where one more may be signed beside so many. */
  async function findRetryAfterMs(walletId: string, beside: number): Promise<number> {
    if (beside >= perDay) return DAY_MS
    // The oldest that would be within the last 24 hours together with those.
    const signedAt = await store.findSignedAt({ walletId, position: perDay - beside })
    return signedAt === undefined ? 0 : Math.max(0, signedAt + DAY_MS - clock.now())
  }

  /**
   * Nothing is refused for the sake of one that is under way: that one may fail, or be stored meanwhile and so be counted twice. It
   * is waited for, and the database asked again.
   */
  async function admit(walletId: string, key: Key, ofWallet: ReadonlyMap<Key, Asked>): Promise<number> {
    for (;;) {
      const earlier = [...ofWallet.values()].slice(0, [...ofWallet.keys()].indexOf(key))
      const retryAfterMs = await findRetryAfterMs(walletId, earlier.length)
      if (retryAfterMs === 0 || earlier.length === 0) return retryAfterMs
      await Promise.race(earlier.map(({ over }) => over))
    }
  }

  /** A request for what is asked for already shares its place: one signature answers both. */
  function ask(walletId: string, key: Key): Asked {
    const ofWallet = wallets.get(walletId) ?? new Map<Key, Asked>()
    wallets.set(walletId, ofWallet)
    const known = ofWallet.get(key)
    if (known !== undefined) {
      known.requests += 1
      return known
    }
    let end = () => {}
    const over = new Promise<void>((resolve) => (end = resolve))
    const asked: Asked = { requests: 1, over, end, retryAfterMs: Promise.resolve(0) }
    ofWallet.set(key, asked)
    asked.retryAfterMs = admit(walletId, key, ofWallet)
    return asked
  }

  function leave(walletId: string, key: Key, asked: Asked) {
    asked.requests -= 1
    if (asked.requests > 0) return
    const ofWallet = wallets.get(walletId)
    ofWallet?.delete(key)
    if (ofWallet?.size === 0) wallets.delete(walletId)
    asked.end()
  }

  return {
    async run({ walletId, digest, onRefused }, sign) {
      const key = digest ?? Symbol('off-chain')
      const asked = ask(walletId, key)
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
        leave(walletId, key, asked)
      }
    },
  }
}
