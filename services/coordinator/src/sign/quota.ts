import { CoordinatorError } from '../errors.ts'
import type { Clock, Store } from '../ports.ts'

export type SignQuota = {
  /** Runs a signing of this wallet, if it is within the quota. Otherwise throws `quota_spent`, and calls `onRefused` before. */
  run<Result>(
    parameters: { walletId: string; onRefused(retryAfterS: number): void },
    sign: () => Promise<Result>,
  ): Promise<Result>
}

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
  if (perDay === undefined) return { run: (_, sign) => sign() }
  const underWay = new Map<string, number>()

  async function findRetryAfterMs(walletId: string, position: number): Promise<number> {
    if (position < 1) return 1000
    // The oldest that would be within the last 24 hours together with those under way.
    const signedAt = await store.findSignedAt({ walletId, position })
    return signedAt === undefined ? 0 : signedAt + DAY_MS - clock.now()
  }

  return {
    async run({ walletId, onRefused }, sign) {
      const count = (underWay.get(walletId) ?? 0) + 1
      underWay.set(walletId, count)
      try {
        const retryAfterMs = await findRetryAfterMs(walletId, perDay - count + 1)
        if (retryAfterMs > 0) {
          onRefused(Math.ceil(retryAfterMs / 1000))
          throw new CoordinatorError('quota_spent', 'the quota of signatures is spent', {
            details: `${perDay} signatures in 24 hours`,
          })
        }
        return await sign()
      } finally {
        const rest = (underWay.get(walletId) ?? 1) - 1
        if (rest === 0) underWay.delete(walletId)
        else underWay.set(walletId, rest)
      }
    },
  }
}
