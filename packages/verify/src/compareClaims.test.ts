import type { ProofPayload } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { compareClaims, findLies } from './compareClaims.ts'
import {
  apiBaseUrl,
  createFakeNetwork,
  type FakeNetwork,
  issueReceipt,
  toFetchBytes,
  toLog,
  toProof,
  toTrustJson,
} from './service.fake.ts'
import { parseTrust } from './trust.ts'
import { verifySubject } from './verifySubject.ts'

const issue = await issueReceipt()
const other = await issueReceipt({ nonce: 1 })
const honest = toProof(issue)

async function liesOf(
  change: Partial<ProofPayload>,
  spoil: (network: FakeNetwork) => void = () => {},
  { allowMock = true, now }: { allowMock?: boolean; now?: Date } = {},
) {
  const proof = { ...honest, ...change }
  const network = createFakeNetwork(issue)
  network.blocks.set(other.cid, other.bytes)
  spoil(network)
  const verification = await verifySubject(
    { fetchBytes: toFetchBytes(network), onProgress: () => {} },
    {
      subject: { kind: 'cid', cid: proof.ipfsCid ?? issue.cid },
      trust: { ...parseTrust(toTrustJson(issue)), allowMock },
      gateways: [apiBaseUrl],
      isEventDue: proof.status === 'complete',
      statedReceipt: proof.receipt,
    },
  )
  return findLies(compareClaims(proof, verification, now)).map(({ member }) => member)
}

test('an honest answer has no lie in it, and every claim is judged', async () => {
  expect(await liesOf({})).toEqual([])
  const checksummed = honest.walletAddress.toUpperCase().replace('0X', '0x') as typeof honest.walletAddress
  expect(await liesOf({ walletAddress: checksummed })).toEqual([])
})

describe('every lie is found, and none beside it', () => {
  test.each<[string, Partial<ProofPayload>, (keyof ProofPayload)[]]>([
    ['another transaction', { txHash: `0x${'11'.repeat(32)}` }, ['txHash']],
    ['another chain', { chainId: 1 }, ['chainId']],
    ['another wallet', { walletAddress: `0x${'22'.repeat(20)}` }, ['walletAddress']],
    ['a changed copy of the receipt', { receipt: other.receipt }, ['receipt']],
    ['the event in another transaction', { onchainTxHash: `0x${'33'.repeat(32)}` }, ['onchainTxHash']],
    ['the event in another block', { onchainBlockNumber: 13 }, ['onchainBlockNumber']],
    ['complete, but without a transaction', { onchainTxHash: null }, ['status']],
    ['complete, but without a block', { onchainBlockNumber: null }, ['status']],
    ['the quote not verified, though it is good', { kmsQuoteVerified: false }, ['kmsQuoteVerified']],
    ['pinned, but without a CID', { status: 'pending_onchain', ipfsCid: null, receipt: null }, ['receipt', 'status']],
    ['pinned, but without a copy of the receipt', { receipt: null }, ['receipt']],
    ['on its way to the chain, where it has long been', { status: 'pending_onchain' }, ['status']],
    ['given up, while the chain has the event', { status: 'onchain_failed' }, ['status']],
    ['not pinned, but with a CID', { status: 'pending_pin' }, ['status']],
    ['a failed pin, but with a CID', { status: 'pin_failed' }, ['status']],
  ])('%s', async (_name, change, members) => {
    expect(await liesOf(change)).toEqual(members)
  })

  test('complete, while the chain has no event', async () => {
    const lies = await liesOf({}, ({ rpc }) => {
      rpc.eth_getLogs = []
    })
    expect(lies).toEqual(['status'])
  })

  test('another CID than the one that the chain points to', async () => {
    const lies = await liesOf({}, ({ rpc }) => {
      rpc.eth_getLogs = [toLog(issue, other.cid)]
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
    expect(await liesOf({}, () => {}, { allowMock: false })).toEqual(['kmsQuoteVerified'])
  })
})

test('before completion the publishing transaction may change, and is no claim', async () => {
  const withoutEvent = ({ rpc }: FakeNetwork) => {
    rpc.eth_getLogs = []
  }
  const onchainTxHash = `0x${'44'.repeat(32)}` as const
  expect(await liesOf({ status: 'pending_onchain', onchainTxHash }, withoutEvent)).toEqual([])
  expect(await liesOf({ status: 'onchain_failed', onchainTxHash }, withoutEvent)).toEqual([])
})

test('a fresh event may be news to the service that waits for it, not to one that gave up', async () => {
  const soon = { now: new Date(new Date(issue.receipt.transaction.signedAt).getTime() + 60_000) }
  expect(await liesOf({ status: 'pending_onchain' }, () => {}, soon)).toEqual([])
  expect(await liesOf({ status: 'onchain_failed' }, () => {}, soon)).toEqual(['status'])
})

test('a chain that cannot be asked accuses nobody', async () => {
  const lies = await liesOf({}, ({ rpc }) => {
    rpc.eth_chainId = '0x1'
  })
  expect(lies).toEqual([])
})

test('without a receipt all but the shape of the answer stays open', () => {
  const claims = compareClaims(honest, undefined)
  expect(claims.map(({ verdict }) => verdict)).toEqual(claims.map(() => 'open'))
  expect(findLies(compareClaims({ ...honest, onchainTxHash: null }, undefined)).map(({ member }) => member)).toEqual([
    'status',
  ])
})

test('what is said about a lie names both sides', async () => {
  const [lie] = findLies(
    compareClaims({ ...honest, chainId: 5 }, {
      receipt: issue.receipt,
      steps: [],
      cid: issue.cid,
    } as unknown as Parameters<typeof compareClaims>[1]),
  )
  expect(lie).toMatchObject({ text: 'The chain is 5.', detail: 'The receipt says 31337.' })
})
