import { parseAbi } from 'viem/utils'

/** What the publisher reads of ServiceAttestations, and every error by which the contract refuses. */
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
])
