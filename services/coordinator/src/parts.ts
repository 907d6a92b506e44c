import type { LogService } from './log/logService.ts'
import type { Chain } from './publish/chain/viemChain.ts'
import type { Pinner } from './publish/ipfs/pinner.ts'
import type { KeyEnclave } from './sign/enclave/keyEnclave.ts'
import type { Entropy } from './sign/entropy/readAhead.ts'
import type { PipelineStore, Store } from './store/openStore.ts'

/** The parts that a test may wrap or replace. */
export type Parts = {
  store: Store
  pipeline: PipelineStore
  entropy: Entropy
  enclave: KeyEnclave
  logService: LogService
  pinner: Pinner
  chain: Chain
}

/** Returns the part to use in place of the original. */
export type Decorate = <Name extends keyof Parts>(name: Name, part: Parts[Name]) => Parts[Name]

export const keepOriginal: Decorate = (_name, part) => part
