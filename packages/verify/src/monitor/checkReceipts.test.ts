import { toCanonicalJson } from '@countersign/protocol'
import { nameSignature, parseAnyReceipt, toCid } from '@countersign/receipt'
import { beforeEach, describe, expect, test } from 'vitest'
import { contract, type FakeIssue, issue, issueGoldenV2, signedAt, toManifest } from '../../test/issues.ts'
import { createFakeNode } from '../../test/monitor/node.ts'
import { createFakeNetwork, type FakeNetwork, gatewayUrl, rpcUrl } from '../../test/network.ts'
import { createRpc } from '../createRpc.ts'
import { createFetchBytes } from '../fetchBytes.ts'
import { checkReceipts } from './checkReceipts.ts'
import { listEvents } from './listEvents.ts'

const plain = { signedAt, treeSize: 1, leafIndex: 0, batchSequence: 0 }
const first = await issue()
const second = await issueGoldenV2(plain)
const { from: wallet, txHash } = nameSignature(first.receipt)

let network: FakeNetwork
let node: ReturnType<typeof createFakeNode>
beforeEach(() => {
  network = createFakeNetwork(first)
  for (const block of [second.bytes, second.collateral, ...Object.values(second.blocks)]) addBlock(block)
  node = createFakeNode({ wallet })
  network.routes.push([rpcUrl, node.answer])
})

function addBlock(block: Uint8Array): string {
  network.blocks.set(toCid(block), Uint8Array.from(block))
  return toCid(block)
}

async function runCheck(hash: string = txHash) {
  const fetchBytes = createFetchBytes({ fetch: network.fetch, timeoutMs: 5_000 })
  const rpc = createRpc({ fetchBytes }, { url: rpcUrl })
  const events = await listEvents(rpc, { contract, wallet, fromBlock: 0, toBlock: node.blocks.length })
  const request = { manifests: [first, second].map(toManifest), gateways: [gatewayUrl], allowMock: true }
  const deps = { fetchBytes, rpc, now: () => new Date('2026-07-01T00:00:00Z') }
  const parameters = { txHash: hash, isMined: true, events, contract, logContracts: [], request }
  return (await checkReceipts(deps, parameters))[0]
}

/** The length of a CID. */
const texts = ['one', 'two', 'three', 'four', 'five'].map((text) => text.padEnd(first.cid.length, '.'))
/** CIDs of blocks that are not receipts. */
const junk = (count: number) =>
  Array.from({ length: count }, (_, at) => addBlock(new TextEncoder().encode(`no receipt, ${at}`)))
const publish = (cids: readonly string[]) => {
  for (const cid of cids) node.publish({ ...first, cid })
}

describe('a receipt with a valid form, but with an impossible statement, fails', () => {
  type Case = [name: string, value: string, version: number, issued: FakeIssue]
  const members = [
    ['publicKey', '00'.repeat(65)],
    ['signedAt', '2026-02-30T12:00:00.000Z'],
    ['signedAt', '2026-13-32T25:61:61.000Z'],
  ] as const
  const cases: Case[] = [
    ['signature', `0x${'00'.repeat(65)}`, 1, first],
    ...members.map((member): Case => [...member, 1, first]),
    ...members.map((member): Case => [...member, 2, second]),
  ]
  test.each(cases)('%s %s, version %i', async (name, value, _, issued) => {
    const { signer } = issued.receipt
    const changed = { ...issued.receipt, signer: { ...signer, statement: { ...signer.statement, [name]: value } } }
    const bytes = toCanonicalJson(changed)
    const receipt = parseAnyReceipt(bytes)
    node.publish({ ...issued, receipt, cid: addBlock(bytes) })
    expect(await runCheck(nameSignature(receipt).txHash)).toMatchObject({ conclusion: 'failed', facts: undefined })
  })
})

describe('the receipts that a publisher names for one transaction', () => {
  test('text that is not a CID does not displace a receipt', async () => {
    publish([...texts, first.cid])
    expect(await runCheck()).toMatchObject({ conclusion: 'accepted' })
  })

  test('text that is not a CID is not a receipt', async () => {
    publish(texts)
    expect(await runCheck()).toMatchObject({ conclusion: 'failed', detail: 'the event names no receipt' })
  })

  test('a valid receipt is found among three invalid ones', async () => {
    publish([...junk(3), first.cid])
    expect(await runCheck()).toMatchObject({ conclusion: 'accepted' })
  })

  test('an unchecked one may be valid, so the others do not fail the transaction', async () => {
    publish([...junk(4), first.cid])
    expect(await runCheck()).toMatchObject({ conclusion: 'unavailable', detail: 'only 4 of 5 receipts are checked' })
  })

  test('four invalid ones are a failure if none was left unchecked', async () => {
    publish(junk(4))
    expect(await runCheck()).toMatchObject({ conclusion: 'failed' })
  })

  test('a receipt has the time of its first event, without requests for the others', async () => {
    publish([first.cid, ...Array.from({ length: 40 }, () => first.cid), ...junk(2)])
    expect(await runCheck()).toMatchObject({ conclusion: 'accepted' })
    expect(node.asked.filter((method) => method === 'eth_getBlockByNumber')).toHaveLength(1)
  })
})
