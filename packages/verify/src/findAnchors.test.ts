import { checkpointTopic, type Hex, type ProofAnchor, toSizeTopic } from '@countersign/protocol'
import { type AnchoredReceipt, nameSignature, toCid } from '@countersign/receipt'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  createFakeAnchor,
  editBlock,
  type FakeAnchor,
  logContract,
  logId,
  logWitness,
  otherId,
  toProofAnchor,
} from '../test/anchors.ts'
import { contract, toManifest, toProof } from '../test/issues.ts'
import { createLoggedWallet, first, message, now, second, wallet } from '../test/monitor/loggedWallet.ts'
import { stranger } from '../test/monitor/node.ts'
import { apiBaseUrl, gatewayUrl, rpcUrl } from '../test/network.ts'
import { withCode } from '../test/withCode.ts'
import { createFetchBytes } from './fetchBytes.ts'
import type { Manifest } from './parseManifest.ts'
import { type Outcome, type VerifyRequest, verify as verifyReceipt } from './verify.ts'

const { txHash } = nameSignature(first.receipt)
const manifest: Manifest = { ...toManifest(first), logContracts: [logContract] }
const subjects = {
  cid: { kind: 'cid', cid: first.cid },
  file: { kind: 'file', name: 'receipt.json', bytes: first.bytes },
  transaction: { kind: 'transaction', txHash },
} as const

let stack: ReturnType<typeof createLoggedWallet>
let anchor: FakeAnchor
beforeEach(() => {
  tickMs = 0
  stack = createLoggedWallet()
  stack.node.mine({ hash: txHash, from: wallet, nonce: 0 })
  anchor = createFakeAnchor(stack.log, [first, message])
})

/** Pins the blocks of an anchor and mines its checkpoint. */
function publish(one: FakeAnchor = anchor, changes: Readonly<Record<string, unknown>> = {}): number {
  for (const { cid, bytes } of [one.block, ...one.parts]) stack.network.blocks.set(cid, bytes)
  return stack.node.anchor(one, changes)
}

/** The time that each look at the clock takes. */
let tickMs = 0
let ticks = 0
const verify = (change: Partial<VerifyRequest> = {}) =>
  verifyReceipt(
    {
      fetchBytes: createFetchBytes({ fetch: stack.network.fetch, timeoutMs: 5_000 }),
      now: () => new Date(now.getTime() + tickMs * ticks++),
    },
    { subject: subjects.cid, manifests: [manifest], gateways: [gatewayUrl], rpc: rpcUrl, allowMock: true, ...change },
  )

const verifyProof = (change: Partial<ProofAnchor> = {}, request: Partial<VerifyRequest> = {}, block = 9) => {
  const stated = { ...toProofAnchor(stack.log, first, anchor, block), ...change }
  const proof = toProof(first, { anchor: stated, onchainBlockNumber: block })
  return verify({ subject: { kind: 'proof', slug: proof.slug, api: apiBaseUrl, proof }, ...request })
}

const eventOf = ({ steps, conclusion }: Outcome) => {
  const { status, detail } = steps.find(({ id }) => id === 'event') ?? { status: undefined, detail: '' }
  return [conclusion, status, detail]
}
const withLogs = (...logs: { id: string; upTo?: number }[]): Manifest => ({
  ...manifest,
  logContracts: [{ ...logContract, logs }],
})
const fetched = ({ cid }: { cid: string }) => stack.network.requests.some((request) => request.includes(cid))
const failed = (detail: string) => ['failed', 'fail', expect.stringContaining(detail)]
const skipped = (detail: string) => ['incomplete', 'skip', expect.stringContaining(detail)]
const NO_EVENT = 'The contract has no event for this wallet and transaction.'

describe('a receipt in an anchor is accepted', () => {
  test.each(['cid', 'file', 'transaction'] as const)('by %s', async (kind) => {
    const blockNumber = publish()
    const outcome = await verify({ subject: subjects[kind] })
    expect(eventOf(outcome)).toEqual(['accepted', 'pass', expect.stringContaining('has a checkpoint of 5 entries')])
    expect(outcome.anchor).toMatchObject({ given: { contract: logWitness, id: logId, size: 5 }, log: { blockNumber } })
    expect(outcome.steps.find(({ id }) => id === 'time-bound')?.detail).toMatch(/^The checkpoint is of /)
  })

  test('by a proof that names the checkpoint, without its parts', async () => {
    const block = publish()
    const outcome = await verifyProof({}, {}, block)
    expect(eventOf(outcome)).toEqual(['accepted', 'pass', expect.anything()])
    expect([fetched(anchor.block), anchor.parts.some(fetched)]).toEqual([true, false])
    expect(outcome.claims.map(({ member, verdict }) => [member, verdict])).toContainEqual(['anchor', 'holds'])
    expect(outcome.claims.map(({ verdict }) => verdict)).toEqual(outcome.claims.map(() => 'holds'))
  })

  test('if it was pinned after another anchor had covered its entry', async () => {
    const early = createFakeAnchor(stack.log, [], { size: 3 })
    const { path } = toProofAnchor(stack.log, first, anchor, 9)
    const change = (receipt: AnchoredReceipt) => ({ ...receipt, path })
    publish(early)
    publish(createFakeAnchor(stack.log, [first], { from: 3, change }))
    const { anchor: found, conclusion } = await verify({ subject: subjects.transaction })
    // The first checkpoint is the tightest bound.
    expect([conclusion, found?.given.size]).toEqual(['accepted', 3])
  })

  test.each(['cid', 'transaction'] as const)(
    'by %s, if the first anchor of the log starts after its entry',
    async (kind) => {
      const { path } = toProofAnchor(stack.log, first, anchor, 9)
      const change = (receipt: AnchoredReceipt) => ({ ...receipt, path })
      publish(createFakeAnchor(stack.log, [], { from: 3, size: 4 }))
      publish(createFakeAnchor(stack.log, [first], { from: 4, change }))
      const { anchor: found, conclusion } = await verify({ subject: subjects[kind] })
      expect([conclusion, found?.given.size]).toEqual(['accepted', 5])
    },
  )

  test.each(['withheld', 'invalid', 'of another log'])(
    'if the first anchor that covers it is %s, and the next one lists it with its path',
    async (fault) => {
      const { path } = toProofAnchor(stack.log, first, anchor, 9)
      const change = (receipt: AnchoredReceipt) => ({ ...receipt, path })
      const rogue = createFakeAnchor(stack.log, [], { size: 3 })
      const bytes = editBlock(
        rogue.block,
        fault === 'invalid' ? '"from":0' : 'enclave-a',
        fault === 'invalid' ? '"from":1' : 'enclave-b',
      )
      publish(fault === 'withheld' ? rogue : { ...rogue, block: { cid: toCid(bytes), bytes } })
      if (fault === 'withheld') stack.network.blocks.delete(rogue.block.cid)
      publish(createFakeAnchor(stack.log, [first], { from: 3, change }))
      const { anchor: found, conclusion } = await verify()
      expect([conclusion, found?.given.size]).toEqual(['accepted', 5])
    },
  )

  test('by one of two manifests', async () => {
    publish()
    const manifests = [withLogs({ id: logId, upTo: 1 }, { id: otherId }), manifest]
    expect(eventOf(await verify({ manifests }))[0]).toBe('accepted')
  })

  test('by a node that limits the range of blocks', async () => {
    publish()
    stack.node.rest(2_500)
    stack.node.lie = (method, [filter]) => {
      const { address, fromBlock, toBlock } = (filter ?? {}) as Record<string, string>
      const isWide = method === 'eth_getLogs' && address === logWitness && Number(toBlock) - Number(fromBlock) >= 1_000
      return isWide ? new Error('block range is too wide') : undefined
    }
    expect(await verify()).toMatchObject({ conclusion: 'accepted' })
    expect(await verify({ subject: subjects.transaction })).toMatchObject({ conclusion: 'accepted' })
  })

  test('with a contract of events from the reader', async () => {
    publish()
    const manifests = [{ ...manifest, contracts: [] }]
    expect(await verify({ manifests, contract })).toMatchObject({ conclusion: 'accepted' })
    await expect(verify({ manifests })).rejects.toThrow(withCode('invalid_arguments', 'no manifest names one'))
  })

  test('with logs from the reader, up to their last size', async () => {
    publish()
    const { logContracts: _, ...rest } = manifest
    const from = (upTo: number) => [{ address: logWitness, logs: [{ id: logId, upTo }] }]
    for (const manifests of [[rest], [{ ...rest, contracts: [] }]]) {
      for (const subject of Object.values(subjects)) {
        const outcome = await verify({ subject, manifests, contract, logContracts: from(5) })
        expect(outcome).toMatchObject({ conclusion: 'accepted', anchor: { given: { size: 5 } } })
      }
      expect(eventOf(await verifyProof({}, { manifests, contract, logContracts: from(5) }))[0]).toBe('accepted')
      expect(eventOf(await verifyProof({}, { manifests, contract, logContracts: from(4) }))).toEqual(
        skipped('more than your manifest accepts'),
      )
    }
  })
})

test('an event comes before an anchor', async () => {
  publish()
  stack.node.publish(first)
  for (const subject of Object.values(subjects)) {
    const outcome = await verify({ subject })
    expect(outcome).toMatchObject({ conclusion: 'accepted', anchor: undefined })
  }
  expect(fetched(anchor.block)).toBe(false)
  expect(await verifyProof()).toMatchObject({ anchor: undefined })
})

test('an event for another receipt of the transaction does not hide an anchor', async () => {
  publish()
  stack.node.publish({ ...first, cid: second.cid })
  expect(eventOf(await verify())[0]).toBe('accepted')
})

describe('a forged or unlisted checkpoint', () => {
  test.each<[string, Readonly<Record<string, unknown>>]>([
    ['of another contract', { address: stranger }],
    ['of another log', { topics: [checkpointTopic, otherId, toSizeTopic(5)] }],
    ['that a reorganisation removed', { removed: true }],
  ])('%s is ignored', async (_, changes) => {
    publish(anchor, changes)
    expect(eventOf(await verify())).toEqual(failed(NO_EVENT))
    expect(eventOf(await verifyProof())).toEqual(failed('no checkpoint of this size'))
    await expect(verify({ subject: subjects.transaction })).rejects.toThrow(
      withCode('event_not_found', 'none of 0 anchor blocks'),
    )
  })

  test('of another size than the service says fails, and its claims are false', async () => {
    publish()
    const outcome = await verifyProof({ size: 4 })
    expect(eventOf(outcome)).toEqual(failed('no checkpoint of this size'))
    const lies = outcome.claims.filter(({ verdict }) => verdict === 'false').map(({ member }) => member)
    expect(lies).toEqual(['status', 'anchor'])
  })

  test.each([['cid'], ['proof']])('with another root than the cosigned one fails, by %s', async (kind) => {
    publish({ ...anchor, root: `0x${'00'.repeat(32)}` })
    const outcome = await (kind === 'cid' ? verify() : verifyProof())
    expect(eventOf(outcome)).toEqual(failed('The witnesses cosigned another tree'))
    await expect(verify({ subject: subjects.transaction })).rejects.toThrow(
      withCode('event_not_found', 'none of 1 anchor blocks lists it (1 withheld or invalid)'),
    )
  })

  test('that too few witnesses cosigned fails', async () => {
    stack.log.cosigners = [0]
    anchor = createFakeAnchor(stack.log, [first])
    publish()
    expect(eventOf(await verify())).toEqual(failed('too few witnesses cosigned'))
  })

  test('that no manifest lists is a skip', async () => {
    publish()
    expect(eventOf(await verifyProof({ id: otherId }, { manifests: [toManifest(first)] }))).toEqual(
      skipped('which your manifest doesn’t list'),
    )
    expect(eventOf(await verify({ manifests: [toManifest(first)] }))).toEqual(failed(NO_EVENT))
    // The reader's own log has a checkpoint.
    expect(eventOf(await verifyProof({ id: otherId }))[0]).toBe('accepted')
  })

  test('above the size at which the log ended does not count', async () => {
    publish()
    const manifests = [withLogs({ id: logId, upTo: 4 })]
    expect(eventOf(await verify({ manifests }))).toEqual(failed(NO_EVENT))
    expect(eventOf(await verifyProof({}, { manifests }))).toEqual(skipped('more than your manifest accepts'))
    const subject = subjects.transaction
    await expect(verify({ subject, manifests })).rejects.toThrow(withCode('event_not_found', 'none of 0 anchor blocks'))
  })

  test('in a block that is not final yet is a skip', async () => {
    publish()
    stack.node.unsettled = 1
    for (const outcome of [await verify(), await verify({ subject: subjects.transaction }), await verifyProof()]) {
      expect(eventOf(outcome)).toEqual(['unbounded', 'skip', expect.stringContaining('none is expected yet')])
      expect(outcome.isEventMissing).toBe(true)
    }
    stack.node.rest(1)
    expect(eventOf(await verify())[0]).toBe('accepted')
  })

  test('is final 64 blocks later if the node knows no final block', async () => {
    stack.node.lie = (method, [tag]) =>
      method === 'eth_getBlockByNumber' && tag === 'finalized' ? new Error('finalized block not found') : undefined
    publish()
    stack.node.rest(63)
    expect(eventOf(await verify())[0]).toBe('unbounded')
    stack.node.rest(1)
    expect(eventOf(await verify())[0]).toBe('accepted')
  })
})

test('a service that names a wrong path or entry is contradicted', async () => {
  const block = publish()
  const { path } = toProofAnchor(stack.log, message, anchor, block)
  const wrong = await verifyProof({ path }, {}, block)
  expect(eventOf(wrong)).toEqual(failed(''))
  expect(wrong.claims.filter(({ verdict }) => verdict === 'false').map(({ member }) => member)).toEqual([
    'status',
    'anchor',
  ])
  for (const change of [{ index: 4 }, { blockNumber: 3 }, { txHash: `0x${'00'.repeat(32)}` as Hex }]) {
    const { claims } = await verifyProof(change, {}, block)
    expect(claims.filter(({ verdict }) => verdict === 'false').map(({ member }) => member)).toEqual(['anchor'])
  }
})

describe('a block that no gateway has', () => {
  test('is withheld, and the step is a skip', async () => {
    publish()
    stack.network.blocks.delete(anchor.block.cid)
    for (const outcome of [await verify(), await verifyProof()]) {
      expect(eventOf(outcome)).toEqual(skipped('the anchor block is withheld'))
      expect(outcome.problems).toContainEqual(expect.stringContaining('the anchor block of 5 entries: '))
    }
  })

  test.each(['withheld', 'changed'])('is a skip if only a part is %s', async (kind) => {
    publish()
    const [part] = anchor.parts
    if (part === undefined) throw new Error('no part')
    if (kind === 'withheld') stack.network.blocks.delete(part.cid)
    else stack.network.blocks.set(part.cid, editBlock(part, 'countersign', 'Countersign'))
    expect(eventOf(await verify())).toEqual(skipped('the anchor block is withheld'))
    await expect(verify({ subject: subjects.transaction })).rejects.toThrow(
      withCode('event_not_found', 'none of 1 anchor blocks lists it (1 withheld'),
    )
    // The service's path replaces the part.
    expect(eventOf(await verifyProof())[0]).toBe('accepted')
  })

  test('does not end the search of earlier anchors', async () => {
    publish()
    for (const size of [6, 7]) {
      stack.append({ kind: 'table', rows: size, root: '00'.repeat(32), timeMs: 0 })
      const later = createFakeAnchor(stack.log, [], { from: size - 1, size })
      publish(later)
      stack.network.blocks.delete(later.block.cid)
    }
    expect(eventOf(await verify({ subject: subjects.transaction }))[0]).toBe('accepted')
    const other = { kind: 'transaction', txHash: `0x${'11'.repeat(32)}` } as const
    await expect(verify({ subject: other })).rejects.toThrow(
      withCode('event_not_found', 'none of 3 anchor blocks lists it (2 withheld'),
    )
  })
})

describe('an anchor', () => {
  test('whose parts lead to another root fails', async () => {
    const other = createFakeAnchor(stack.log, [], { from: 0, size: 3 })
    const [part] = other.parts
    const bytes = editBlock(anchor.block, anchor.parts[0]?.cid ?? '', part?.cid ?? '')
    anchor = { ...anchor, block: { cid: toCid(bytes), bytes }, parts: other.parts }
    publish()
    const outcome = await verify()
    expect(eventOf(outcome)).toEqual(failed(''))
    expect(outcome.problems).toContainEqual('the anchor block of 5 entries: wrong number of entries')
  })

  test('whose parts are too large is not read to the end', async () => {
    const filler = createFakeAnchor(stack.log, Array<typeof first>(640).fill(first))
    const [part] = filler.parts
    const list = `"parts":["${Array(2_000).fill(part?.cid).join('","')}"]`
    const bytes = editBlock(filler.block, `"parts":["${part?.cid}"]`, list)
    publish({ ...filler, block: { cid: toCid(bytes), bytes } })
    const { problems } = await verify()
    expect(problems).toContainEqual('the anchor block of 5 entries: the parts are too large')
    const times = stack.network.requests.filter((request) => request.includes(part?.cid ?? '')).length
    expect(times).toBeLessThan(134_217_728 / (part?.bytes.length ?? 0) + 10)
  })

  test('is not read to the end if that takes too long', async () => {
    const [part] = anchor.parts
    const list = `"parts":["${Array(2_000).fill(part?.cid).join('","')}"]`
    const bytes = editBlock(anchor.block, `"parts":["${part?.cid}"]`, list)
    publish({ ...anchor, block: { cid: toCid(bytes), bytes } })
    tickMs = 30_000
    expect(eventOf(await verify())).toEqual(skipped('took too long'))
    expect(stack.network.requests.filter((request) => request.includes(part?.cid ?? '')).length).toBeLessThan(31)
  })

  test.each<[string, Partial<AnchoredReceipt>]>([
    ['another wallet', { wallet: stranger as Hex }],
    ['another receipt', { cid: message.cid }],
  ])('that lists %s for a transaction does not mislead', async (_, change) => {
    publish(createFakeAnchor(stack.log, [first], { change: (receipt) => ({ ...receipt, ...change }) }))
    const { conclusion, steps } = await verify({ subject: subjects.transaction })
    expect(conclusion).toBe('failed')
    expect(steps.filter(({ status }) => status === 'fail').map(({ id }) => id)).toEqual(['subject'])
  })

  test('that lists two receipts for a transaction is ambiguous', async () => {
    const change = (receipt: AnchoredReceipt) => ({ ...receipt, txHash: txHash as Hex })
    publish(createFakeAnchor(stack.log, [first, second], { change }))
    await expect(verify({ subject: subjects.transaction })).rejects.toThrow(
      withCode('invalid_arguments', `${first.cid}, ${second.cid}`),
    )
  })
})

describe('a node that lies or fails', () => {
  const lie = (method: string, answer: (params: readonly unknown[]) => unknown) => {
    stack.node.lie = (asked, params) => (asked === method ? answer(params) : undefined)
  }
  const isForLogs = ([filter]: readonly unknown[]) => (filter as { address: unknown }).address !== contract
  const all = () => Promise.all([verify(), verifyProof()])

  test.each<[string, (log: object) => unknown, string]>([
    ['events out of range', (log) => [{ ...log, blockNumber: '0xffff' }], 'has other blocks'],
    ['a malformed checkpoint', (log) => [{ ...log, data: '0x00' }], 'malformed checkpoint'],
    ['no list', () => ({}), 'is not a list'],
  ])('with %s is unavailable', async (_, answer, detail) => {
    publish()
    const [log = {}] = stack.node.blocks.at(-1)?.logs ?? []
    lie('eth_getLogs', (params) => (isForLogs(params) ? answer(log) : undefined))
    for (const outcome of await all()) expect(eventOf(outcome)).toEqual(skipped(detail))
    await expect(verify({ subject: subjects.transaction })).rejects.toThrow(withCode('chain_unavailable', detail))
  })

  test('with an endless chain gets a limited number of requests', async () => {
    lie('eth_getBlockByNumber', () => ({
      number: '0xfffffffffffff',
      hash: `0x${'00'.repeat(32)}`,
      timestamp: '0x7fffffff',
    }))
    stack.node.maxLogBlocks = 1_000
    expect(eventOf(await verify())).toEqual(skipped('more than 20000 requests'))
  })

  test('or takes a quarter of an hour ends the search', async () => {
    for (let from = 2; from < 5; from++) publish(createFakeAnchor(stack.log, [], { from, size: from + 1 }))
    tickMs = 300_000
    expect(eventOf(await verify())).toEqual(skipped('took too long'))
    await expect(verify({ subject: subjects.transaction })).rejects.toThrow(withCode('event_not_found', 'none of 1 '))
  })

  test('of another chain is unavailable', async () => {
    publish()
    lie('eth_chainId', () => '0x5')
    for (const outcome of await all()) expect(eventOf(outcome)).toEqual(skipped(''))
  })
})

describe('claims about a checkpoint', () => {
  const statusOf = async (proof: Parameters<typeof toProof>[1]) => {
    const changed = toProof(first, proof)
    const outcome = await verify({ subject: { kind: 'proof', slug: changed.slug, api: apiBaseUrl, proof: changed } })
    const { verdict, detail } = outcome.claims.find(({ member }) => member === 'status') ?? {}
    return [verdict, detail]
  }
  const pending = { onchainTxHash: null, onchainBlockNumber: null }

  test('leave a service that is behind the chain uncontradicted', async () => {
    expect(await statusOf({ status: 'pending_onchain', ...pending })).toEqual([
      'open',
      'Only the service knows its progress.',
    ])
    const block = publish()
    expect(await statusOf({ status: 'pending_onchain', ...pending })).toEqual([
      'open',
      `The service is behind the chain: block ${block} has a checkpoint of a tree with this entry.`,
    ])
    // An anchor may never list a receipt that its checkpoint covers.
    expect((await statusOf({ status: 'onchain_failed', ...pending }))[0]).toBe('open')
  })

  test('allow another transaction until it is confirmed', async () => {
    const block = publish()
    const anchor = { ...toProofAnchor(stack.log, first, createFakeAnchor(stack.log, [first, message]), block - 1) }
    const proof = toProof(first, { anchor, status: 'pending_onchain', ...pending } as const)
    const { claims } = await verify({ subject: { kind: 'proof', slug: proof.slug, api: apiBaseUrl, proof } })
    expect(claims.filter(({ verdict }) => verdict === 'false')).toEqual([])
  })

  test('say that a complete proof has a checkpoint', async () => {
    const anchor = { ...toProofAnchor(stack.log, first, createFakeAnchor(stack.log, [first]), 9) }
    expect(await statusOf({ anchor })).toEqual([
      'false',
      'A complete proof has a checkpoint on the chain, but the chain has none that covers this receipt.',
    ])
    publish()
    expect(await statusOf({ anchor })).toEqual(['holds', 'The chain has a checkpoint that covers this receipt.'])
  })
})

test('a search by transaction reads the closest anchor blocks first', async () => {
  const published = [2, 3, 4].map((size) => createFakeAnchor(stack.log, [], { size }))
  for (const one of published) publish(one)
  // More than a day later.
  stack.node.rest(2_000)
  publish(createFakeAnchor(stack.log, []))
  await expect(verify({ subject: subjects.transaction })).rejects.toThrow(withCode('event_not_found', 'none of 3'))
  const cids = published.map(({ block }) => block.cid)
  expect(stack.network.requests.flatMap((request) => cids.find((cid) => request.includes(cid)) ?? [])).toEqual(cids)
})
