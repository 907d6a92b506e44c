import { X509Certificate } from 'node:crypto'
import { parsePckPlatform, parsePem, parseQuote, QuoteError } from '@countersign/attestation'
import { CoordinatorError } from '../errors.ts'
import type { CollateralStore } from '../ports.ts'

/** Whose collateral judges a quote: Intel keeps it by kind of processor, and revocations by the authority that certified it. */
export type Platform = Parameters<CollateralStore['current']>[0]

/** The quotes of one enclave all carry the same chain. */
let latest: { pckChain: string; platform: Platform } | undefined

/**
 * The platform that a quote says it is of. Nothing is verified yet: a quote that names another platform than its own fails
 * against that platform's collateral.
 */
export function platformOf(quote: Uint8Array): Platform {
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

function readPlatform(pckChain: string): Platform {
  const { fmspc } = parsePckPlatform(pckChain)
  const [pck = new Uint8Array()] = parsePem(pckChain)
  const { issuer } = new X509Certificate(pck)
  const [, ca] = /^CN=Intel SGX PCK (Platform|Processor) CA$/m.exec(issuer) ?? []
  if (ca === undefined) throw new QuoteError('certificate_chain_invalid', 'not a PCK certificate')
  return { fmspc, ca: ca === 'Platform' ? 'platform' : 'processor' }
}
