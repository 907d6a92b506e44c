import { keccak_256 } from '@noble/hashes/sha3.js'
import { concatBytes } from './bytes.ts'
import { toCanonicalJson } from './canonicalJson.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { fromPrefixedHex, type Hex } from './hex.ts'
import { isPrefixedHex } from './isPrefixedHex.ts'

/** The maximum length of off-chain content, as canonical JSON in UTF-8. */
export const MAX_OFF_CHAIN_BYTES = 32_768

/**
 * Rejects content that is too large, or that canonical JSON can't represent: an opening has the content in that form. `invalid` creates
 * the error of its kind.
 */
export function assertOffChainContent(content: unknown, invalid: (details: string) => Error): void {
  let bytes: Uint8Array
  try {
    bytes = toCanonicalJson(content)
  } catch (error) {
    // Without the cause, which wouldn't help the caller.
    if (error instanceof ServiceError) throw invalid('JSON cannot represent it without loss')
    throw error
  }
  if (bytes.length > MAX_OFF_CHAIN_BYTES) {
    const details = `more than ${MAX_OFF_CHAIN_BYTES} bytes`
    throw new ServiceError<ProtocolErrorCode>('message_too_large', 'the message is too large', { details })
  }
}

/**
 * The digest to sign for a message: EIP-191, version 0x45, `0x19 ‖ "Ethereum Signed Message:\n" ‖ length ‖ message`. No RLP list and no
 * EIP-2718 type starts with this byte, so it can't be the digest of a transaction.
 *
 * @example
 * hashMessage('0x68656c6c6f') // over the five bytes of "hello"
 */
export function hashMessage(message: Hex): Uint8Array<ArrayBuffer> {
  assertOffChainContent({ message }, invalid)
  if (!isPrefixedHex(message)) throw invalid('expected 0x and an even number of hex digits')
  const bytes = fromPrefixedHex(message)
  // The length in bytes, not characters, in decimal.
  const head = new TextEncoder().encode(`\x19Ethereum Signed Message:\n${bytes.length}`)
  return keccak_256(concatBytes(head, bytes))
}

function invalid(details: string) {
  return new ServiceError<ProtocolErrorCode>('invalid_message', 'invalid message', { details })
}
