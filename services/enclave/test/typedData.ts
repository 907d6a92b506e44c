import type { TypedData } from '@countersign/protocol'

/** An ERC-2612 permit: the holder of its signature can take the tokens. */
export const permit: TypedData = {
  domain: { name: 'Token', version: '1', chainId: 1, verifyingContract: `0x${'11'.repeat(20)}` },
  types: {
    Permit: [
      { name: 'owner', type: 'address' },
      { name: 'spender', type: 'address' },
      { name: 'value', type: 'uint256' },
      { name: 'nonce', type: 'uint256' },
      { name: 'deadline', type: 'uint256' },
    ],
  },
  primaryType: 'Permit',
  message: {
    owner: `0x${'22'.repeat(20)}`,
    spender: `0x${'33'.repeat(20)}`,
    value: String(2n ** 256n - 1n),
    nonce: 0,
    deadline: '1900000000',
  },
}
