import { type AttestationPublished, type Hex, serviceAttestationsAbi } from '@countersign/protocol'
import { encodeFunctionData } from 'viem/utils'

/** Calldata that publishes proofs, in their order: `publish` for one, `publishBatch` for more. */
export function encodePublish(proofs: readonly AttestationPublished[]): Hex {
  const [first, ...others] = proofs
  if (first === undefined) throw new RangeError('there is nothing to publish')
  const { wallet, txHash, ipfsCid } = first
  return others.length === 0
    ? encodeFunctionData({ abi: serviceAttestationsAbi, functionName: 'publish', args: [wallet, txHash, ipfsCid] })
    : encodeFunctionData({ abi: serviceAttestationsAbi, functionName: 'publishBatch', args: [proofs] })
}
