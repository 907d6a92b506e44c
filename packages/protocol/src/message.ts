import { keccak_256 } from '@noble/hashes/sha3.js'
import { concatBytes } from './bytes.ts'
import { toCanonicalJson } from './canonicalJson.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { fromPrefixedHex, type Hex } from './hex.ts'
import { isPrefixedHex } from './isPrefixedHex.ts'

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

/**
 * The digest that a wallet key signs for a message: EIP-191, version 0x45, `0x19 ‖ "Ethereum Signed Message:\n" ‖ length ‖ message`.
 * The first byte is no RLP list and no EIP-2718 type, so the digest is of no transaction.
 *
 * @example
 * hashMessage('0x68656c6c6f') // over the five bytes of "hello"
 */
export function hashMessage(message: Hex): Uint8Array<ArrayBuffer> {
  assertOffChainContent({ message }, invalid)
  if (!isPrefixedHex(message)) throw invalid('not hex of whole bytes with 0x')
  const bytes = fromPrefixedHex(message)
  // In decimal, and of the bytes, not of characters.
  const head = new TextEncoder().encode(`\x19Ethereum Signed Message:\n${bytes.length}`)
  return keccak_256(concatBytes(head, bytes))
}

function invalid(details: string) {
  return new ServiceError<ProtocolErrorCode>('invalid_message', 'invalid message', { details })
}
