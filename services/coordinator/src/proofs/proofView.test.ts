import { readFileSync } from 'node:fs'
import { type ProofPayload, proofStatuses, toCanonicalJson } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { completeProof } from '../../test/proofs/completeProof.ts'
import type { Proof } from '../store/proofs.ts'
import { type ProofView, toProofView } from './proofView.ts'

const read = (path: string) =>
  JSON.parse(readFileSync(new URL(`../../../../packages/receipt/spec/${path}`, import.meta.url), 'utf8'))

const proof: Proof = { ...completeProof, isFinal: true }

const toText = ({ latin1 }: ProofView) => Buffer.from(latin1, 'latin1').toString()

describe.each([
  ['version 1', read('golden/receipt.json')],
  ['version 2', read('golden-v2/transaction/attestation.json')],
  ['text of any kind', { 'é€😀\\"\u2028\n\u0001</script>': ['', null, 1e21, 0.1, { '': true }] }],
])('with a receipt of %s', (_, receipt) => {
  const stored = { ...proof, receipt: toCanonicalJson(receipt) }

  test('the stored bytes equal a new serialization', () => {
    const body = toText(toProofView(stored, undefined))
    expect(body).toBe(JSON.stringify(JSON.parse(body)))
    expect(JSON.parse(body).receipt).toEqual(receipt)
  })

  test.each(proofStatuses)('in %s it has all members in order', (status) => {
    const body = toText(toProofView({ ...stored, status }, 'https://ipfs.example/'))
    const payload = JSON.parse(body) as ProofPayload
    expect(Object.keys(payload)).toEqual([
      'slug',
      'txHash',
      'chainId',
      'walletAddress',
      'status',
      'ipfsCid',
      'ipfsUrl',
      'onchainTxHash',
      'onchainBlockNumber',
      'kmsQuoteVerified',
      'receipt',
      'createdAt',
    ])
    expect(payload.receipt).toEqual(status === 'pending_pin' || status === 'pin_failed' ? null : receipt)
  })
})

test('without a receipt the member is null; kinds other than transactions are named', () => {
  const body = toText(toProofView({ ...proof, kind: 'off-chain' }, undefined))
  expect(JSON.parse(body)).toMatchObject({ kind: 'off-chain', receipt: null, ipfsUrl: 'ipfs://bafkcid' })
})

test('its version depends on its bytes, not on finality', () => {
  const { version } = toProofView(proof, undefined)
  expect(toProofView({ ...proof, isFinal: false }, undefined).version).toBe(version)
  expect(toProofView({ ...proof, onchainBlockNumber: 6 }, undefined).version).not.toBe(version)
})
