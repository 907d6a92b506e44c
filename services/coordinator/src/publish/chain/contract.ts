import { type AttestationPublished, type Hex, serviceAttestationsAbi, toPrefixedHex } from '@countersign/protocol'
import { encodeFunctionData, parseAbi } from 'viem/utils'

/** The publisher's part of ServiceAttestations, with all errors of both contracts. */
export const publisherAbi = parseAbi([
  'function publisher() view returns (address)',
  'error NotPublisher(address caller)',
  'error NotOwner(address caller)',
  'error NotPendingOwner(address caller)',
  'error ZeroOwner()',
  'error ZeroPublisher()',
  'error ZeroWallet(uint256 index)',
  'error ZeroTxHash(uint256 index)',
  'error EmptyCid(uint256 index)',
  'error OversizedCid(uint256 index, uint256 length)',
  'error EmptyBatch()',
  'error OversizedBatch(uint256 length)',
  'error AlreadyRegistered(bytes32 id)',
  'error InvalidSize(uint64 head)',
  'error Inconsistent()',
])

/** The publisher's part of LogWitness. */
export const logWitnessAbi = parseAbi([
  'function advance(bytes32 id, uint64 newSize, bytes32 newRoot, bytes32 blockHash, bytes32[] consistency)',
  'function head(bytes32 id) view returns (uint64 size, bytes32 root)',
  'function publisher(bytes32 id) view returns (address)',
])

/** Encodes the calldata for proofs in order: `publish` for one, `publishBatch` for more. */
export function encodePublish(proofs: readonly AttestationPublished[]): Hex {
  const [first, ...others] = proofs
  if (first === undefined) throw new RangeError('no proofs to publish')
  const { wallet, txHash, ipfsCid } = first
  return others.length === 0
    ? encodeFunctionData({ abi: serviceAttestationsAbi, functionName: 'publish', args: [wallet, txHash, ipfsCid] })
    : encodeFunctionData({ abi: serviceAttestationsAbi, functionName: 'publishBatch', args: [proofs] })
}

/** Encodes the calldata of a checkpoint. */
export function encodeAdvance(parameters: {
  id: Hex
  size: number
  root: Uint8Array
  block: Hex
  consistency: readonly Uint8Array[]
}): Hex {
  const { id, size, root, block, consistency } = parameters
  const args = [id, BigInt(size), toPrefixedHex(root), block, consistency.map(toPrefixedHex)] as const
  return encodeFunctionData({ abi: logWitnessAbi, functionName: 'advance', args })
}
