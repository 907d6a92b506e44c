import { toCanonicalJson } from './canonicalJson.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'

/** How long what is signed off the chain may be, as canonical JSON in UTF-8. */
export const MAX_OFF_CHAIN_BYTES = 32_768

/**
 * Refuses content that is too large, or that canonical JSON cannot carry: an opening shows it in that form. `invalid` makes the
 * error of its kind.
 */
export function assertOffChainContent(content: unknown, invalid: (details: string) => Error): void {
  let bytes: Uint8Array
  try {
    bytes = toCanonicalJson(content)
  } catch (error) {
    // Its cause would repeat nothing of the content, but neither would it help anybody.
    if (error instanceof ServiceError) throw invalid('not JSON without loss')
    throw error
  }
  if (bytes.length > MAX_OFF_CHAIN_BYTES) {
    const details = `more than ${MAX_OFF_CHAIN_BYTES} bytes`
    throw new ServiceError<ProtocolErrorCode>('message_too_large', 'the message is too large', { details })
  }
}
