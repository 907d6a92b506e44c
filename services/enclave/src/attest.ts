import type { QuoteSource } from '@countersign/evidence/core'
import {
  type AttestResponse,
  computeEnclaveAttestReportData,
  type EnclaveConfig,
  type EnclaveSettings,
  fromHex,
  hashEnclaveConfig,
  toHex,
} from '@countersign/protocol/core'
import { createCallQueue } from './callQueue.ts'
import type { KeyWorker } from './keys/keyWorker.ts'
import type { StatementLog } from './log/statementLog.ts'

export type AttestDeps = {
  quoteSource: QuoteSource
  config: EnclaveConfig
  settings: EnclaveSettings
  bootId: Uint8Array
  /** SHA-256 of the TLS key, or zeros without TLS. */
  tlsKeyHash: Uint8Array
  keyWorker: Pick<KeyWorker, 'getCommitment'>
  /** Present if the settings have a log. */
  statementLog?: Pick<StatementLog, 'describe'> | undefined
}

/** The most attestations that may wait. A coordinator needs one at a time; more would only delay signatures. */
const MAX_WAITING = 4

/** Requests quotes for attestations one at a time, so that a signature waits for at most one of them. */
export function createAttestor(deps: AttestDeps): (request: { nonce: string }) => Promise<AttestResponse> {
  const enqueue = createCallQueue(MAX_WAITING)
  return (request) => enqueue(() => attest(deps, request))
}

/** Returns a quote over the caller's nonce, the TLS key and the configuration. It proves that the connection ends in this enclave now. */
async function attest(deps: AttestDeps, { nonce }: { nonce: string }): Promise<AttestResponse> {
  const { quoteSource, config, settings, bootId, tlsKeyHash, keyWorker, statementLog } = deps
  const { quote, eventLog } = await quoteSource.getQuote(
    computeEnclaveAttestReportData({ tlsKeyHash, nonce: fromHex(nonce), configHash: hashEnclaveConfig(config) }),
  )
  return {
    quote: Buffer.from(quote).toString('hex'),
    ...(eventLog === undefined ? {} : { eventLog }),
    config,
    settings,
    tlsKeyHash: toHex(tlsKeyHash),
    bootId: toHex(bootId),
    commitment: toHex(await keyWorker.getCommitment()),
    ...(statementLog === undefined ? {} : { logs: await statementLog.describe() }),
  }
}
