import { type AttestationPublished, type Hex, serviceAttestationsAbi } from '@countersign/protocol'
import { decodeFunctionData, encodeAbiParameters, encodeErrorResult, encodeEventTopics, parseAbi } from 'viem/utils'
import { intrinsicGas, lower } from './transaction.ts'

export type Log = { topics: Hex[]; data: Hex; event: AttestationPublished }

export type Call = { from: Hex; to: Hex | undefined; data: Hex; value: bigint }

export const CONTRACT: Hex = '0x5fbdb2315678afecb367f032d93f642f64180aa3'

const errorsAbi = parseAbi([
  'function publisher() view returns (address)',
  'error NotPublisher(address caller)',
  'error EmptyCid(uint256 index)',
  'error OversizedBatch(uint256 length)',
])
const contractAbi = [...serviceAttestationsAbi, ...errorsAbi]
const MAX_BATCH = 256

export type FakeContract = ReturnType<typeof createFakeContract>

/** A fake ServiceAttestations contract with the calls and events that a coordinator uses. */
export function createFakeContract(publisher: Hex) {
  const reverts = new Set<(proof: AttestationPublished) => boolean>([({ ipfsCid }) => ipfsCid === ''])

  function toRevert(proofs: readonly AttestationPublished[], from: Hex): Hex | undefined {
    if (from !== contract.publisher) {
      return encodeErrorResult({ abi: errorsAbi, errorName: 'NotPublisher', args: [from] })
    }
    if (proofs.length > MAX_BATCH) {
      return encodeErrorResult({ abi: errorsAbi, errorName: 'OversizedBatch', args: [BigInt(proofs.length)] })
    }
    const index = proofs.findIndex((proof) => [...reverts].some((isMatch) => isMatch(proof)))
    if (index < 0) return undefined
    return encodeErrorResult({ abi: errorsAbi, errorName: 'EmptyCid', args: [BigInt(index)] })
  }

  const contract = {
    publisher,
    /** Returns the effect of a call: its gas and logs, or its revert data. */
    execute(call: Call): { gas: bigint; logs: Log[]; output: Hex; revert: Hex | undefined } {
      const intrinsic = intrinsicGas(call.data)
      const result = { gas: intrinsic, logs: [], output: '0x' as Hex, revert: undefined }
      if (call.to !== CONTRACT) return result
      const proofs = readProofs(call.data)
      if (proofs === 'publisher') {
        return { ...result, output: encodeAbiParameters([{ type: 'address' }], [contract.publisher]) }
      }
      const revert = proofs === undefined || call.value > 0n ? '0x' : toRevert(proofs, call.from)
      if (proofs === undefined || revert !== undefined) return { ...result, gas: intrinsic + 1_000n, revert }
      return { ...result, gas: intrinsic + 2_500n + 4_000n * BigInt(proofs.length), logs: proofs.map(toLog) }
    },
    /** Makes calls with matching proofs revert as if they had no CID, until the returned function is called. */
    revertFor(proof: Hex | ((proof: AttestationPublished) => boolean)) {
      const isMatch =
        typeof proof === 'function' ? proof : ({ txHash }: AttestationPublished) => txHash === lower(proof)
      reverts.add(isMatch)
      return () => void reverts.delete(isMatch)
    },
  }
  return contract
}

/** Undefined for calldata that doesn't match a function of the contract. */
function readProofs(data: Hex): 'publisher' | AttestationPublished[] | undefined {
  try {
    const decoded = decodeFunctionData({ abi: contractAbi, data })
    if (decoded.functionName === 'publisher') return 'publisher'
    const { functionName, args } = decoded
    const proofs = functionName === 'publish' ? [{ wallet: args[0], txHash: args[1], ipfsCid: args[2] }] : args[0]
    return proofs.map((proof) => ({ ...proof, wallet: lower(proof.wallet) }))
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
