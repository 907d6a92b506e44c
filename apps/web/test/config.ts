import { contract, type FakeIssue, toManifest } from '../../../packages/verify/test/issues.ts'
import { apiBaseUrl, rpcUrl } from '../../../packages/verify/test/network.ts'
import type { WebConfig } from '../src/config.ts'

/** A site whose operator configures every anchor and accepts mock evidence. */
export function toConfig(issue: FakeIssue): WebConfig {
  return {
    apiBaseUrl,
    chainId: 31337,
    rpcUrl,
    explorerUrl: 'https://explorer.test',
    attestations: { chainId: 31337, rpcUrl, address: contract },
    trust: toManifest(issue),
    allowMock: true,
  }
}
