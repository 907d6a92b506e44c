import type { Collateral } from '@countersign/attestation/core'
import { type Platform, readPlatform } from '@countersign/evidence/core'
import type { Clock } from '../ports.ts'

/** Intel issues new collateral about once a day, and a peer checks its dates. */
const MAX_AGE_MS = 3_600_000

/** Fetches this machine's collateral on demand and caches it for an hour. */
export function createCollateralSource(deps: {
  fetch(platform: Platform): Promise<Collateral>
  clock: Clock
}): (quote: Uint8Array) => Promise<Collateral> {
  let latest: { collateral: Collateral; name: string; fetchedAt: number } | undefined
  return async (quote) => {
    const platform = readPlatform(quote)
    const name = `${platform.fmspc} ${platform.ca}`
    const now = deps.clock.now()
    const isFresh = latest?.name === name && now >= latest.fetchedAt && now < latest.fetchedAt + MAX_AGE_MS
    if (latest === undefined || !isFresh) {
      latest = { collateral: await deps.fetch(platform), name, fetchedAt: now }
    }
    return latest.collateral
  }
}
