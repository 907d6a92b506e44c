import { type AttestationPublished, type Hex, serviceAttestationsAbi } from '@countersign/protocol'
import { decodeFunctionData, encodeAbiParameters, encodeErrorResult, encodeEventTopics, parseAbi } from 'viem/utils'
import type { FakeContract, Log } from './contract.ts'
import { lower } from './transaction.ts'

export const SERVICE_ATTESTATIONS: Hex = '0x5fbdb2315678afecb367f032d93f642f64180aa3'

const errorsAbi = parseAbi([
  'function publisher() view returns (address)',
  'error NotPublisher(address caller)',
  'error EmptyCid(uint256 index)',
  'error OversizedBatch(uint256 length)',
])
const contractAbi = [...serviceAttestationsAbi, ...errorsAbi]
const MAX_BATCH = 256

/** A fake ServiceAttestations contract with the calls and events that a coordinator uses. */
export function createServiceAttestations(initialPublisher: Hex) {
  let publisher = initialPublisher
  const reverts = new Set<(proof: AttestationPublished) => boolean>([({ ipfsCid }) => ipfsCid === ''])

  function toRevert(proofs: readonly AttestationPublished[], from: Hex): Hex | undefined {
    if (from !== publisher) {
      return encodeErrorResult({ abi: errorsAbi, errorName: 'NotPublisher', args: [from] })
    }
    if (proofs.length > MAX_BATCH) {
      return encodeErrorResult({ abi: errorsAbi, errorName: 'OversizedBatch', args: [BigInt(proofs.length)] })
    }
    const index = proofs.findIndex((proof) => [...reverts].some((isMatch) => isMatch(proof)))
    if (index < 0) return undefined
    return encodeErrorResult({ abi: errorsAbi, errorName: 'EmptyCid', args: [BigInt(index)] })
  }

  const contract: FakeContract = ({ data, from }) => {
    const proofs = readProofs(data)
    if (proofs === undefined) return undefined
    if (proofs === 'publisher') return { output: encodeAbiParameters([{ type: 'address' }], [publisher]) }
    const revert = toRevert(proofs, from)
    if (revert !== undefined) return { revert }
    return { gas: 2_500n + 4_000n * BigInt(proofs.length), logs: proofs.map(toLog) }
  }

  return {
    contract,
    setPublisher(account: Hex) {
      publisher = account
    },
    /** Makes calls with matching proofs revert as if they had no CID, until the returned function is called. */
    revertFor(proof: Hex | ((proof: AttestationPublished) => boolean)) {
      const isMatch =
        typeof proof === 'function' ? proof : ({ txHash }: AttestationPublished) => txHash === lower(proof)
      reverts.add(isMatch)
      return () => void reverts.delete(isMatch)
    },
  }
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

function toLog(published: AttestationPublished): Log {
  const { wallet, txHash, ipfsCid } = published
  const topics = encodeEventTopics({
    abi: serviceAttestationsAbi,
    eventName: 'AttestationPublished',
    args: { wallet, txHash },
  }) as Hex[]
  return {
    address: SERVICE_ATTESTATIONS,
    topics,
    data: encodeAbiParameters([{ type: 'string' }], [ipfsCid]),
    published,
  }
}
