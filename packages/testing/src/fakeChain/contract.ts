import { type AttestationPublished, type Hex, serviceAttestationsAbi } from '@countersign/protocol'
import { decodeFunctionData, encodeAbiParameters, encodeErrorResult, encodeEventTopics, parseAbi } from 'viem/utils'
import { intrinsicGas } from './transaction.ts'
import { lower, ZERO_ADDRESS, ZERO_HASH } from './values.ts'

export type Log = { topics: Hex[]; data: Hex; event: AttestationPublished }

export type Call = { from: Hex; to: Hex | undefined; data: Hex; value: bigint }

const errorsAbi = parseAbi([
  'function publisher() view returns (address)',
  'function owner() view returns (address)',
  'error NotPublisher(address caller)',
  'error ZeroWallet(uint256 index)',
  'error ZeroTxHash(uint256 index)',
  'error EmptyCid(uint256 index)',
  'error OversizedCid(uint256 index, uint256 length)',
  'error EmptyBatch()',
  'error OversizedBatch(uint256 length)',
])
const contractAbi = [...serviceAttestationsAbi, ...errorsAbi]

const MAX_BATCH = 256
const MAX_CID_BYTES = 256

export type FakeContract = ReturnType<typeof createFakeContract>

/** ServiceAttestations at an address, as far as calls and events go. */
export function createFakeContract(parameters: { address: Hex; publisher: Hex; owner: Hex }) {
  const { address, owner } = parameters
  let { publisher } = parameters
  const reverts = new Set<(proof: AttestationPublished) => boolean>()

  function toRevert(proofs: readonly AttestationPublished[], from: Hex, isBatch: boolean): Hex | undefined {
    const encode = (errorName: string, args: readonly unknown[]) =>
      encodeErrorResult({ abi: errorsAbi, errorName, args } as Parameters<typeof encodeErrorResult>[0])
    if (from !== publisher) return encode('NotPublisher', [from])
    if (isBatch && proofs.length === 0) return encode('EmptyBatch', [])
    if (proofs.length > MAX_BATCH) return encode('OversizedBatch', [proofs.length])
    for (const [index, proof] of proofs.entries()) {
      const length = Buffer.byteLength(proof.ipfsCid)
      if (proof.wallet === ZERO_ADDRESS) return encode('ZeroWallet', [index])
      if (proof.txHash === ZERO_HASH) return encode('ZeroTxHash', [index])
      if (length === 0) return encode('EmptyCid', [index])
      if (length > MAX_CID_BYTES) return encode('OversizedCid', [index, length])
      if ([...reverts].some((isMatch) => isMatch(proof))) return encode('EmptyCid', [index])
    }
    return undefined
  }

  /** What a call does: the gas that it needs and its logs, or the data of its revert. */
  function execute(call: Call) {
    const intrinsic = intrinsicGas(call.data)
    if (call.to !== address) return { gas: intrinsic, logs: [], output: '0x' as Hex, revert: undefined }
    const reverted = (revert: Hex) => ({ gas: intrinsic + 1_000n, logs: [], output: '0x' as Hex, revert })
    const decoded = decode(call.data)
    if (decoded === undefined || call.value > 0n) return reverted('0x')
    if (!('proofs' in decoded)) {
      const account = decoded.functionName === 'publisher' ? publisher : owner
      const output = encodeAbiParameters([{ type: 'address' }], [account])
      return { gas: intrinsic + 2_500n, logs: [], output, revert: undefined }
    }
    const proofs = decoded.proofs
    const revert = toRevert(proofs, call.from, decoded.functionName === 'publishBatch')
    if (revert !== undefined) return reverted(revert)
    const gas = intrinsic + 2_500n + 4_000n * BigInt(proofs.length)
    return { gas, logs: proofs.map(toLog), output: '0x' as Hex, revert: undefined }
  }

  return {
    address,
    execute,
    setPublisher(account: Hex) {
      publisher = lower(account)
    },
    /** Calls that publish such a proof revert as if it had no CID, until the result is called. */
    revertFor(proof: Hex | ((proof: AttestationPublished) => boolean)) {
      const isMatch =
        typeof proof === 'function' ? proof : ({ txHash }: AttestationPublished) => txHash === lower(proof)
      reverts.add(isMatch)
      return () => void reverts.delete(isMatch)
    },
  }
}

type Decoded =
  | { functionName: 'publisher' | 'owner' }
  | { functionName: 'publish' | 'publishBatch'; proofs: AttestationPublished[] }

/** `undefined` where the contract has no such function, or the data is not that of a call to it. */
function decode(data: Hex): Decoded | undefined {
  try {
    const decoded = decodeFunctionData({ abi: contractAbi, data })
    if (decoded.functionName === 'publisher' || decoded.functionName === 'owner') return decoded
    const { functionName, args } = decoded
    const proofs = functionName === 'publish' ? [{ wallet: args[0], txHash: args[1], ipfsCid: args[2] }] : args[0]
    return { functionName, proofs: proofs.map((proof) => ({ ...proof, wallet: lower(proof.wallet) })) }
  } catch {
    return undefined
  }
}

function toLog(event: AttestationPublished): Log {
  const { wallet, txHash, ipfsCid } = event
  const topics = encodeEventTopics({
    abi: serviceAttestationsAbi,
    eventName: 'AttestationPublished',
    args: { wallet, txHash },
  }) as Hex[]
  return { topics, data: encodeAbiParameters([{ type: 'string' }], [ipfsCid]), event }
}
