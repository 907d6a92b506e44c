import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { type Hex, type ProofPayload, readBounded, serviceAttestationsAbi } from '@countersign/protocol'
import { CID } from 'multiformats/cid'
import { create as createDigest } from 'multiformats/hashes/digest'
import { encodeAbiParameters, encodeEventTopics } from 'viem/utils'
import { expect, onTestFinished, test, vi } from 'vitest'
import { listen } from '../listen.ts'
import { type Audit, audit, type SeenProof } from './audit.ts'
import { waitForCompleteProofs, waitForProofs } from './waitForProofs.ts'

const wallet: Hex = `0x${'aa'.repeat(20)}`
const txHash: Hex = `0x${'11'.repeat(32)}`
const received = { slug: 's', digest: '0x01', signature: '0x02', address: wallet } as const

const receipt = (changes: object = {}) =>
  JSON.stringify({ transaction: { digestSigned: '0x01', signature: '0x02', from: wallet, ...changes } })

const toCid = (text: string) =>
  CID.createV1(0x55, createDigest(0x12, createHash('sha256').update(text).digest())).toString()

type Outside = {
  /** The bytes on IPFS, and what they are there as. */
  block: string
  cid: string
  proof: Partial<ProofPayload>
  /** Transactions with an event, one for each. */
  events: readonly Hex[]
}

/** Service, gateway and node in one, as they are asked by the audit. */
async function startOutside(changes: Partial<Outside> = {}): Promise<Outside & { url: string }> {
  const block = changes.block ?? receipt()
  const outside: Outside = { block, cid: toCid(block), proof: {}, events: [txHash], ...changes }
  const proof = {
    slug: 's',
    status: 'complete',
    txHash,
    ipfsCid: outside.cid,
    kmsQuoteVerified: true,
    ...outside.proof,
  }
  const server = createServer(async (request, response) => {
    await readBounded(request, 65_536)
    if (request.url?.startsWith('/proof/')) return void response.end(JSON.stringify(proof))
    if (request.url === `/ipfs/${outside.cid}?format=raw`) return void response.end(outside.block)
    if (request.method !== 'POST') return void response.writeHead(404).end()
    const result = outside.events.map((hash) => ({
      topics: encodeEventTopics({
        abi: serviceAttestationsAbi,
        eventName: 'AttestationPublished',
        args: { wallet, txHash: hash },
      }),
      data: encodeAbiParameters([{ type: 'string' }], [outside.cid]),
    }))
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))
  })
  const { url, stop } = await listen(server)
  onTestFinished(stop)
  return { ...outside, url }
}

async function run(
  changes: Partial<Outside> = {},
  verdict?: { cid: string } | { fault: string },
  seenAs?: Partial<SeenProof>,
): Promise<Audit> {
  const { url, cid } = await startOutside(changes)
  return audit({
    url,
    chainUrl: url,
    ipfsUrl: url,
    contract: `0x${'cc'.repeat(20)}`,
    received: [received],
    seen: new Map([['s', { status: 'complete', ipfsCid: cid, ...seenAs } as SeenProof]]),
    verifyTransaction: async () => verdict ?? { cid },
  })
}

const none = { lost: [], duplicated: [], invalid: [], unknown: [] }

test('a signature whose proof is complete, published once and about it is verified', async () => {
  expect(await run()).toEqual({ verified: 1, ...none })
})

test('receipts of version 2 are about their subject', async () => {
  const subject = { digestSigned: '0x01', signature: '0x02', from: wallet }
  const block = JSON.stringify({ kind: 'transaction', subject })
  expect(await run({ block })).toEqual({ verified: 1, ...none })
  const other = JSON.stringify({ kind: 'transaction', subject: { ...subject, from: '0xbb' } })
  expect((await run({ block: other })).invalid).toEqual([expect.stringContaining('is of 0xbb')])
  const address = JSON.stringify({ kind: 'address', subject: { address: wallet } })
  expect((await run({ block: address })).invalid).toEqual([expect.stringContaining('is about no transaction')])
})

test('what was not complete when it was last seen, or has no event, is lost', async () => {
  expect(await run({}, undefined, { status: 'pending_onchain' })).toMatchObject({ lost: ['s is pending_onchain'] })
  expect(await run({ events: [] })).toEqual({ verified: 0, ...none, lost: ['s has no event'] })
})

test('a second event of a transaction is a duplicate, and one that no client knows is unknown', async () => {
  const other: Hex = `0x${'22'.repeat(32)}`
  const found = await run({ events: [txHash, txHash, other] })
  expect(found).toEqual({ verified: 1, ...none, duplicated: [`${txHash} has 2 events`], unknown: [other] })
})

test.each<[string, Parameters<typeof run>, RegExp]>([
  ['the verifier does not accept it', [{}, { fault: 'exit code 1: quote fail' }], /^s: exit code 1: quote fail$/],
  ['the chain names another receipt', [{}, { cid: 'other' }], /the service names baf\w+, the chain other/],
  ['it is about another digest', [{ block: receipt({ digestSigned: '0x03' }) }], /is about another signature/],
  ['it is about another signature', [{ block: receipt({ signature: '0x03' }) }], /is about another signature/],
  ['it is of another wallet', [{ block: receipt({ from: '0xbb' }) }], /is of 0xbb, not of 0xaa/],
  ['its bytes are others', [{ block: receipt(), cid: toCid('x') }], /has other bytes/],
  ['the service says that it verified no quote', [{ proof: { kmsQuoteVerified: false } }], /kmsQuoteVerified/],
  ['its CID has changed', [{ proof: { ipfsCid: 'other' } }], /is complete with other now/],
  ['it is complete no more', [{ proof: { status: 'onchain_failed' } }], /is onchain_failed with/],
])('a proof is invalid where %s', async (_, parameters, fault) => {
  const { verified, invalid } = await run(...parameters)
  expect([verified, invalid]).toEqual([0, [expect.stringMatching(fault)]])
})

test('proofs are read until they are terminal, refused, or late', async () => {
  // The clock of the limit moves with the questions alone.
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const statuses = ['pending_pin', 'pending_onchain', 'complete']
  const get = async (url: string) => {
    if (url.endsWith('/none')) return new Response('', { status: 404 })
    const isLate = url.endsWith('/late')
    if (isLate) vi.advanceTimersByTime(100)
    const status = isLate ? 'pending_pin' : (statuses.shift() ?? 'complete')
    return Response.json({ slug: 'one', status })
  }
  const read = await waitForProofs({ url: 'http://service', slugs: ['one', 'none', 'late'], timeoutMs: 250, get })
  expect(read.map(({ httpStatus, proof }) => [httpStatus, proof?.status])).toEqual([
    [200, 'complete'],
    [404, undefined],
    [200, 'pending_pin'],
  ])
  const wait = (slug: string) => waitForCompleteProofs({ url: 'http://service', slugs: [slug], timeoutMs: 0, get })
  expect(await wait('one')).toMatchObject([{ status: 'complete' }])
  await expect(wait('none')).rejects.toThrow('proof none is 404')
  await expect(wait('late')).rejects.toThrow('proof late is pending_pin')
})
