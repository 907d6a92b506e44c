import type { Log } from '@countersign/service'
import type { Clock, KeyEnclave, LogKeeper, Schedule, Store } from '../ports.ts'
import { createSignerFinder } from './findSigner.ts'
import { createReleases } from './releases.ts'
import type { Logging } from './signLogged.ts'

/** What signing with a log needs, around the keeper of logs. */
export function createLogging(deps: {
  keeper: LogKeeper
  enclave: Pick<KeyEnclave, 'release'>
  store: Pick<Store, 'findSigners'>
  clock: Clock
  sessionIdleMs: number
  schedule: Schedule
  log: Pick<Log, 'warn'>
}): Logging {
  const { keeper, schedule } = deps
  const signers = createSignerFinder(deps)
  return {
    keeper,
    schedule,
    releases: createReleases(deps),
    async findSigned({ sid, asked: { digest }, vault, address }) {
      const { signed } = await signers.find({ sid, digest, wallet: vault && address })
      return signed
    },
  }
}
