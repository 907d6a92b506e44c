import type { ProofPayload } from '@countersign/protocol'
import { canonicalBytes, toCid } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import {
  issueGolden,
  issueGoldenV2,
  issue as issueReceipt,
  publishingTx,
  toLog,
  toManifest,
  toProof,
} from '../test/issues.ts'
import { apiBaseUrl, createFakeNetwork, type FakeNetwork, rpcUrl } from '../test/network.ts'
import { compareClaims, findLies } from './compareClaims.ts'
import { createFetchBytes } from './fetchBytes.ts'
import { verify } from './verify.ts'

const issue = await issueGolden()
const other = await issueReceipt({ txMetadata: { nonce: 1 } })
const honest = toProof(issue)

async function liesOf(
  change: Partial<ProofPayload>,
  spoil: (network: FakeNetwork) => void = () => {},
  { allowMock = true }: { allowMock?: boolean } = {},
) {
  const proof = { ...honest, ...change }
  const network = createFakeNetwork(issue)
  network.blocks.set(other.cid, other.bytes)
  spoil(network)
  const fetchBytes = createFetchBytes({ fetch: network.fetch, timeoutMs: 5_000 })
  if (proof.ipfsCid === null) return findLies(compareClaims(proof, undefined)).map(({ member }) => member)
  const { claims } = await verify(
    { fetchBytes, now: () => new Date() },
    {
      subject: { kind: 'proof', slug: proof.slug, api: apiBaseUrl, proof },
      manifests: [toManifest(issue)],
      rpc: rpcUrl,
      allowMock,
    },
  )
  return findLies(claims).map(({ member }) => member)
}

test('finds no false claim in an honest response, and checks every claim', async () => {
  expect(await liesOf({})).toEqual([])
  const checksummed = honest.walletAddress.toUpperCase().replace('0X', '0x') as typeof honest.walletAddress
  expect(await liesOf({ walletAddress: checksummed })).toEqual([])
})

test('rejects a missing or wrong kind as a false claim', async () => {
  const authorization = await issueGoldenV2({ signing: { kind: 'authorization' } })
  const { cid, receipt } = authorization
  const found = { cid, receipt, isMock: false, isMockRefused: false, steps: [], publications: undefined }
  const proof = toProof(authorization)
  const liesIn = (change: Partial<ProofPayload>) =>
    findLies(compareClaims({ ...proof, ...change }, found)).map(({ member }) => member)
  expect(liesIn({})).toEqual([])
  expect(liesIn({ kind: undefined })).toEqual(['kind'])
  expect(liesIn({ kind: 'off-chain' })).toEqual(['kind'])
})

describe('finds every false claim, and no other', () => {
  test.each<[string, Partial<ProofPayload>, (keyof ProofPayload)[]]>([
    ['another transaction', { txHash: `0x${'11'.repeat(32)}` }, ['txHash']],
    ['another chain', { chainId: 1 }, ['chainId']],
    ['another kind', { kind: 'authorization' }, ['kind']],
    ['another wallet', { walletAddress: `0x${'22'.repeat(20)}` }, ['walletAddress']],
    ['a changed copy of the receipt', { receipt: other.receipt }, ['receipt']],
    ['the event in another transaction', { onchainTxHash: `0x${'33'.repeat(32)}` }, ['onchainTxHash']],
    ['the event in another block', { onchainBlockNumber: 13 }, ['onchainBlockNumber']],
    ['complete, but without a transaction', { onchainTxHash: null }, ['status']],
    ['complete, but without a block', { onchainBlockNumber: null }, ['status']],
    ['the quote not verified, though it is good', { kmsQuoteVerified: false }, ['kmsQuoteVerified']],
    ['pinned, but without a CID', { status: 'pending_onchain', ipfsCid: null, receipt: null }, ['receipt', 'status']],
    ['pinned, but without a copy of the receipt', { receipt: null }, ['receipt']],
    ['failed, while the chain has the event', { status: 'onchain_failed' }, ['status']],
    ['not pinned, but with a CID', { status: 'pending_pin' }, ['status']],
    ['a failed pin, but with a CID', { status: 'pin_failed' }, ['status']],
  ])('%s', async (_name, change, members) => {
    expect(await liesOf(change)).toEqual(members)
  })

  test('a CID other than the one on the chain', async () => {
    const lies = await liesOf({}, ({ rpc }) => {
      rpc.eth_getLogs = [toLog({ ...issue, cid: other.cid })]
    })
    expect(lies).toEqual(['ipfsCid', 'status'])
  })

  test('the CID of another receipt', async () => {
    const lies = await liesOf({ ipfsCid: other.cid })
    expect(lies).toContain('txHash')
    expect(lies).toContain('receipt')
    expect(lies).toContain('status')
  })

  test('the quote verified, while it fails here', async () => {
    const receipt = structuredClone(issue.receipt)
    // A byte of the TD report, which the hardware signed.
    receipt.signer.quoteHex = `${receipt.signer.quoteHex.slice(0, 400)}ff${receipt.signer.quoteHex.slice(402)}`
    const bytes = canonicalBytes(receipt)
    const cid = toCid(bytes)
    const lies = await liesOf({ receipt, ipfsCid: cid }, ({ rpc, blocks }) => {
      blocks.set(cid, bytes)
      rpc.eth_getLogs = [toLog({ ...issue, cid })]
    })
    expect(lies).toEqual(['kmsQuoteVerified'])
  })
})

test('before completion, the publishing transaction may change and is not a claim', async () => {
  const withoutEvent = ({ rpc }: FakeNetwork) => {
    rpc.eth_getLogs = []
  }
  const onchainTxHash = `0x${'44'.repeat(32)}` as const
  expect(await liesOf({ status: 'pending_onchain', onchainTxHash }, withoutEvent)).toEqual([])
  expect(await liesOf({ status: 'onchain_failed', onchainTxHash }, withoutEvent)).toEqual([])
})

test('a service that waits for an event is behind the chain, and not false, however old the event is', () => {
  const event = { ipfsCid: issue.cid, txHash: publishingTx, blockNumber: 16, blockTime: new Date(0) }
  const { cid, receipt } = issue
  const found = { cid, receipt, isMock: false, isMockRefused: false, steps: [], publications: [event] }
  const [status] = compareClaims({ ...honest, status: 'pending_onchain' }, found).filter(
    ({ member }) => member === 'status',
  )
  expect(status).toMatchObject({
    verdict: 'open',
    detail: 'The service is behind the chain: block 16 of 1970-01-01T00:00:00.000Z points to this receipt.',
  })
})

test('an unavailable chain makes no claim false', async () => {
  const lies = await liesOf({}, ({ rpc }) => {
    rpc.eth_chainId = null
  })
  expect(lies).toEqual([])
})

test('without a receipt, only the form of the response can be checked', () => {
  const claims = compareClaims(honest, undefined)
  expect(claims.map(({ verdict }) => verdict)).toEqual(claims.map(() => 'open'))
  expect(findLies(compareClaims({ ...honest, onchainTxHash: null }, undefined)).map(({ member }) => member)).toEqual([
    'status',
  ])
})
