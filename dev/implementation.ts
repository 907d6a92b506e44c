/**
 * The code that wallets of the local stack may delegate to (EIP-7702). The chain's first account deploys it right after the contract, so its
 * address is known in advance: the enclave, whose settings name it, starts at the same time as the chain.
 */
export const IMPLEMENTATION = '0xe7f1725e7734ce288f8367e1bb143e90bb3f0512'

/**
 * PUSH1 42, PUSH0, MSTORE, PUSH1 32, PUSH0, RETURN: a wallet that delegates to it returns 42 to every caller, still accepts ether, and gives
 * no one access.
 */
export const IMPLEMENTATION_CODE = '0x602a5f5260205ff3'

/** The code that deploys it: PUSH8 the code, PUSH0, MSTORE, PUSH1 8, PUSH1 24, RETURN. */
export const IMPLEMENTATION_BYTECODE = '0x67602a5f5260205ff35f5260086018f3'
