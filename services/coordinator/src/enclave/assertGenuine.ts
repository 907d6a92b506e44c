import { assertQuotePolicy, PolicyError, QuoteError, type Verifier } from '@countersign/attestation'
import {
  computeEnclaveAttestReportData,
  type EnclaveConfig,
  fromHex,
  hashEnclaveConfig,
  toHex,
} from '@countersign/protocol'
import type { Clock } from '../system.ts'
import type { CollateralStore } from './collateral/collateralStore.ts'
import type { PlatformReader } from './collateral/platformReader.ts'
import { notAttested } from './endpointError.ts'
import type { EnclavePolicy } from './keyEnclave.ts'

export type AssertGenuineDeps = {
  verifier: Pick<Verifier, 'verifyQuote'>
  collateral: Pick<CollateralStore, 'current'>
  readPlatform: PlatformReader
  policy: EnclavePolicy
  /** Whether quotes must stand under a simulated root, or under none. */
  isMock: boolean
  clock: Clock
}

/** That a quote is of an enclave that we trust, and for these settings, this TLS key and this nonce. Throws `not_attested`. */
export async function assertGenuine(
  deps: AssertGenuineDeps,
  answer: {
    quote: Uint8Array<ArrayBuffer>
    eventLog: string | undefined
    config: EnclaveConfig
    tlsKeyHash: string
    nonce: Uint8Array
  },
): Promise<void> {
  const { configHashes, commitments: _, ...quotePolicy } = deps.policy
  const { quote, eventLog, config, tlsKeyHash, nonce } = answer
  const configHash = hashEnclaveConfig(config)
  if (configHashes !== undefined && !configHashes.includes(toHex(configHash))) {
    throw notAttested(`configuration ${toHex(configHash)}`)
  }
  const { collateral } = await deps.collateral.current(deps.readPlatform(quote))
  const reportData = computeEnclaveAttestReportData({ tlsKeyHash: fromHex(tlsKeyHash), nonce, configHash })
  try {
    const verified = await deps.verifier.verifyQuote({
      quote,
      collateral,
      ...(eventLog === undefined ? {} : { eventLog }),
      at: new Date(deps.clock.now()),
    })
    if (verified.root.mode !== (deps.isMock ? 'mock' : 'hardware')) throw notAttested(`a ${verified.root.mode} quote`)
    assertQuotePolicy(verified, { ...quotePolicy, reportData })
  } catch (cause) {
    if (!(cause instanceof QuoteError || cause instanceof PolicyError)) throw cause
    throw notAttested(cause.code, cause)
  }
}
