import { X509Certificate } from 'node:crypto'
import { parsePckPlatform, parsePem, parseQuote, QuoteError } from '@countersign/attestation'
import { CoordinatorError } from '../errors.ts'
import type { Platform } from '../ports.ts'

/** The platform that a quote names. Throws `attestation_invalid`. */
export type PlatformReader = (quote: Uint8Array) => Platform

/**
 * Nothing is verified: a quote that names another platform than its own fails against that platform's collateral. All quotes of
 * one enclave carry the same chain, so the last chain is remembered.
 */
export function createPlatformReader(): PlatformReader {
  let latest: { pckChain: string; platform: Platform } | undefined
  return (quote) => {
    try {
      const { pckChain } = parseQuote(new Uint8Array(quote))
      if (latest?.pckChain !== pckChain) latest = { pckChain, platform: readPlatform(pckChain) }
      return latest.platform
    } catch (cause) {
      if (!(cause instanceof QuoteError)) throw cause
      throw new CoordinatorError('attestation_invalid', 'the enclave’s quote is not accepted', {
        details: cause.code,
        cause,
      })
    }
  }
}

function readPlatform(pckChain: string): Platform {
  const { fmspc } = parsePckPlatform(pckChain)
  const [pck = new Uint8Array()] = parsePem(pckChain)
  const { issuer } = new X509Certificate(pck)
  const [, ca] = /^CN=Intel SGX PCK (Platform|Processor) CA$/m.exec(issuer) ?? []
  if (ca === undefined) throw new QuoteError('certificate_chain_invalid', 'not a PCK certificate')
  return { fmspc, ca: ca === 'Platform' ? 'platform' : 'processor' }
}
