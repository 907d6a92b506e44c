import { X509Certificate } from 'node:crypto'
import { parsePckPlatform, parsePem, parseQuote, QuoteError } from '@countersign/attestation'

/** Whose collateral judges a quote: Intel keeps it by kind of processor, and revocations by the authority that certified it. */
export type Platform = { fmspc: string; ca: 'platform' | 'processor' }

/**
 * The platform that a quote says it is of. Nothing is verified: a quote that names another platform than its own fails
 * against that platform's collateral. Throws `QuoteError` where there is none to read.
 */
export function readPlatform(quote: Uint8Array): Platform {
  return parsePlatform(parseQuote(new Uint8Array(quote)).pckChain)
}

/** `readPlatform` for many quotes of one enclave: they all carry the same chain, so its platform is parsed once. */
export function createPlatformReader(): typeof readPlatform {
  let latest: { pckChain: string; platform: Platform } | undefined
  return (quote) => {
    const { pckChain } = parseQuote(new Uint8Array(quote))
    if (latest?.pckChain !== pckChain) latest = { pckChain, platform: parsePlatform(pckChain) }
    return latest.platform
  }
}

function parsePlatform(pckChain: string): Platform {
  const { fmspc } = parsePckPlatform(pckChain)
  const [pck = new Uint8Array()] = parsePem(pckChain)
  const [, ca] = /^CN=Intel SGX PCK (Platform|Processor) CA$/m.exec(new X509Certificate(pck).issuer) ?? []
  if (ca === undefined) throw new QuoteError('certificate_chain_invalid', 'not a PCK certificate')
  return { fmspc, ca: ca === 'Platform' ? 'platform' : 'processor' }
}
