import type { LogService } from './log/logService.ts'
import type { Chain } from './publish/chain/viemChain.ts'
import type { Pinner } from './publish/ipfs/pinner.ts'
import type { KeyEnclave } from './sign/enclave/keyEnclave.ts'
import type { Entropy } from './sign/entropy/readAhead.ts'
import type { PipelineStore, Store } from './store/openStore.ts'

/** The dependencies that a test may wrap or replace. */
export type Dependencies = {
  store: Store
  pipeline: PipelineStore
  entropy: Entropy
  enclave: KeyEnclave
  logService: LogService
  pinner: Pinner
  chain: Chain
}

/** Returns the dependency to use instead of the original. */
export type Decorate = <Name extends keyof Dependencies>(name: Name, part: Dependencies[Name]) => Dependencies[Name]

export const keepOriginal: Decorate = (_name, part) => part
