import { keccak_256 } from '@noble/hashes/sha3.js'
import { concatBytes } from './bytes.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { fromPrefixedHex, type Hex } from './hex.ts'
import { isPrefixedHex } from './isPrefixedHex.ts'
import { assertOffChainContent } from './offChainContent.ts'

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
