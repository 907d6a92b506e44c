import { type Hex, serviceAttestationsAbi } from '@countersign/protocol'
import { decodeFunctionData, getAddress } from 'viem/utils'
import { expect, test } from 'vitest'
import { encodePublish } from './contract.ts'

const proofOf = (byte: string) => ({
  wallet: `0x${byte.repeat(20)}` as Hex,
  txHash: `0x${byte.repeat(32)}` as Hex,
  ipfsCid: `bafkrei${byte.repeat(26)}`,
})
/** viem returns checksummed addresses. */
const withChecksum = (proof: ReturnType<typeof proofOf>) => ({ ...proof, wallet: getAddress(proof.wallet) })
const decode = (data: Hex) => decodeFunctionData({ abi: serviceAttestationsAbi, data })

test('encodes one proof as publish', () => {
  const { wallet, txHash, ipfsCid } = proofOf('11')
  expect(decode(encodePublish([proofOf('11')]))).toEqual({ functionName: 'publish', args: [wallet, txHash, ipfsCid] })
})

test.each([2, 3, 200])('encodes %i proofs as publishBatch in order', (count) => {
  const proofs = Array.from({ length: count }, (_, index) => proofOf((index + 16).toString(16).slice(-2)))
  expect(decode(encodePublish(proofs))).toEqual({ functionName: 'publishBatch', args: [proofs.map(withChecksum)] })
})

test('rejects an empty list', () => {
  expect(() => encodePublish([])).toThrow(RangeError)
})

test.each([
  ['wallet', { ...proofOf('11'), wallet: '0x11' as Hex }],
  ['txHash', { ...proofOf('11'), txHash: '0x11' as Hex }],
])('rejects a malformed %s', (_name, proof) => {
  expect(() => encodePublish([proof])).toThrow()
  expect(() => encodePublish([proofOf('22'), proof])).toThrow()
})
