import { QuoteError } from '@countersign/attestation'
import { createPlatformReader as createQuotePlatformReader, type Platform } from '@countersign/evidence'
import { CoordinatorError } from '../../errors.ts'

/** The platform that an enclave's quote names. Throws `attestation_invalid`. */
export type PlatformReader = (quote: Uint8Array) => Platform

export function createPlatformReader(): PlatformReader {
  const readPlatform = createQuotePlatformReader()
  return (quote) => {
    try {
      return readPlatform(quote)
    } catch (cause) {
      if (!(cause instanceof QuoteError)) throw cause
      throw new CoordinatorError('attestation_invalid', 'the enclave’s quote is not accepted', {
        details: cause.code,
        cause,
      })
    }
  }
}
