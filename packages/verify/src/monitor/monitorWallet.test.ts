import { type AnyReceipt, nameSignature, toCid } from '@countersign/receipt'
import { beforeEach, describe, expect, test } from 'vitest'
import { contract, type FakeIssue, issue, issueGoldenV2, signedAt, toManifest } from '../../test/issues.ts'
import { createFakeNode, stranger, toItem } from '../../test/monitor/node.ts'
import { createFakeNetwork, type FakeNetwork, gatewayUrl, rpcUrl } from '../../test/network.ts'
import { createFetchBytes } from '../fetchBytes.ts'
import type { MonitorMemory } from './checkSteps.ts'
import type { MonitorRequest } from './monitorLogs.ts'
import { createMonitorMemory, monitorWallet } from './monitorWallet.ts'
import { describeReport } from './report.ts'

const MANY = 8
const issues: FakeIssue[] = await Promise.all(
  Array.from({ length: MANY }, (_, nonce) => issue({ txMetadata: { nonce } })),
)
const [first, second] = issues as [FakeIssue, FakeIssue]
const authorized = await issueGoldenV2({
  signedAt,
  treeSize: 1,
  leafIndex: 0,
  batchSequence: 0,
  signing: { kind: 'authorization', authorization: { nonce: 1 } },
})
const unpublished = await issueGoldenV2({
  signing: { kind: 'authorization', authorization: { nonce: 1, address: `0x${'bad0'.repeat(10)}` } },
})
const wallet = nameSignature(first.receipt).from
const manifests = [toManifest(first), toManifest(authorized)]

let network: FakeNetwork
let node: ReturnType<typeof createFakeNode>
beforeEach(() => {
  network = createFakeNetwork(first)
  node = createFakeNode({ wallet })
  // The manifest's contract begins at block 7.
  node.rest(7)
  network.routes.push([rpcUrl, node.answer])
  for (const one of [...issues, authorized]) addBlocks(one)
})

function addBlocks({ bytes, collateral, blocks = {} }: FakeIssue) {
  for (const block of [bytes, collateral, ...Object.values(blocks)])
    network.blocks.set(toCid(block), Uint8Array.from(block))
}

function monitor(change: Partial<MonitorRequest> = {}, memory?: MonitorMemory) {
  const deps = {
    fetchBytes: createFetchBytes({ fetch: network.fetch, timeoutMs: 5_000 }),
    now: () => new Date('2026-07-01T00:00:00Z'),
    ...(memory && { memory }),
  }
  const request = { address: wallet, rpc: rpcUrl, manifests, gateways: [gatewayUrl], allowMock: true }
  return monitorWallet(deps, { ...request, ...change })
}

const hashOf = (receipt: AnyReceipt) => nameSignature(receipt).txHash
const own = ({ receipt }: FakeIssue, nonce: number) => ({ hash: hashOf(receipt), from: wallet, nonce })
/** Signed with the same key, but not by the service. */
const foreign = (nonce: number) => ({
  hash: `0x${'f0'.repeat(31)}${nonce.toString(16).padStart(2, '0')}`,
  from: wallet,
  nonce,
})

function send(...sent: FakeIssue[]) {
  for (const [nonce, one] of sent.entries()) {
    node.mine(own(one, nonce))
    node.publish(one)
  }
}

const kindsOf = ({ findings }: { findings: readonly { kind: string; nonces?: readonly number[] }[] }) =>
  findings.map(({ kind, nonces }) => `${kind} ${nonces?.[0] ?? ''}`.trim())

describe('an honest wallet', () => {
  test('is not complete if no receipt names it', async () => {
    const report = await monitor()
    expect(report).toMatchObject({ conclusion: 'incomplete', nonce: 0, findings: [{ kind: 'wallet-unknown' }] })
    expect(describeReport(report).headline).not.toContain('complete up to')
  })

  test('raises nothing, without requests for the state of old blocks', async () => {
    send(...issues)
    node.rest(70)
    node.firstState = node.blocks.length - 1
    const report = await monitor()
    expect(report).toMatchObject({ conclusion: 'complete', nonce: MANY, proven: MANY, completeTo: MANY, findings: [] })
    expect(describeReport(report).headline).toBe('8 of 8 transactions have a proof; complete up to nonce 8.')
  })

  test('is read in small ranges if the node allows no others', async () => {
    send(first, second)
    node.rest(300)
    node.maxLogBlocks = 100
    expect(await monitor()).toMatchObject({ conclusion: 'complete', proven: 2 })
    expect(node.asked.filter((method) => method === 'eth_getLogs').length).toBeGreaterThan(3)
  })

  test('is not checked again by a second run with the first one’s memory', async () => {
    send(first, second)
    const memory = createMonitorMemory()
    await monitor({}, memory)
    const before = network.requests.filter((line) => line.includes('/ipfs/')).length
    node.mine(own(issues[2] as FakeIssue, 2))
    node.publish(issues[2] as FakeIssue)
    expect(await monitor({}, memory)).toMatchObject({ conclusion: 'complete', proven: 3, completeTo: 3 })
    expect(network.requests.filter((line) => line.includes('/ipfs/')).length - before).toBeLessThanOrEqual(2)
  })
})

describe('a key that is used elsewhere', () => {
  test.each([0, 1, 2])('is reported with nonce, transaction and block: nonce %i of three', async (bad) => {
    for (const nonce of [0, 1, 2]) {
      node.rest(3)
      if (nonce === bad) node.mine(foreign(nonce))
      else node.mine(own(issues[nonce] as FakeIssue, nonce))
    }
    node.rest(30)
    for (const nonce of [0, 1, 2]) if (nonce !== bad) node.publish(issues[nonce] as FakeIssue)
    const report = await monitor()
    expect(report).toMatchObject({ conclusion: 'used-elsewhere', proven: 2, completeTo: bad })
    expect(report.findings).toEqual([
      { kind: 'no-receipt', nonces: [bad, bad], txHash: foreign(bad).hash, blockNumber: 7 + 4 * (bad + 1) },
    ])
    expect(describeReport(report).headline).toContain('The key is used elsewhere')
  })

  test('is found among transactions of one block', async () => {
    node.mine(own(first, 0), foreign(1), own(issues[2] as FakeIssue, 2))
    node.rest(20)
    node.publish(first)
    node.publish(issues[2] as FakeIssue)
    expect(kindsOf(await monitor())).toEqual(['no-receipt 1'])
  })

  test('is reported even by a node without old state, if no receipt can belong to it', async () => {
    send(first)
    node.mine(foreign(1))
    node.rest(200)
    node.firstState = 100
    const report = await monitor()
    expect(report.findings).toMatchObject([
      { kind: 'no-receipt', nonces: [1, 1], detail: expect.stringContaining('missing trie node') },
    ])
  })

  test('is not reported while the receipt may still come, but leaves a gap', async () => {
    send(first)
    node.mine(foreign(1))
    const report = await monitor()
    expect(report).toMatchObject({ conclusion: 'incomplete', completeTo: 1 })
    expect(kindsOf(report)).toEqual(['awaited 1'])
    expect(kindsOf(await monitor({ graceS: 0 }))).toEqual(['no-receipt 1'])
  })

  test('is not reported while the chain with the events is behind', async () => {
    const events = createFakeNode({ wallet })
    network.routes.push(['https://events.test', events.answer])
    events.rest(10)
    node.mine(foreign(0))
    node.rest(60)
    const change = { eventsRpc: 'https://events.test' }
    expect(kindsOf(await monitor(change))).toEqual(['awaited 0', 'wallet-unknown'])
    events.rest(10)
    expect(kindsOf(await monitor(change))).toEqual(['no-receipt 0', 'wallet-unknown'])
  })

  test('is found if the event names the receipt of another transaction', async () => {
    node.mine(foreign(0))
    node.publish(first, { topics: [...topicsOf(first).slice(0, 2), foreign(0).hash] })
    const report = await monitor()
    expect(report.conclusion).toBe('receipt-failed')
    expect(kindsOf(report)).toEqual(['receipt-failed 0'])
  })

  test('is not reported for a configuration that the manifest does not list', async () => {
    send(first, second)
    const unlisted = manifests.map((one) => ({ ...one, enclave: { ...one.enclave, configHashes: ['c1'.repeat(32)] } }))
    const report = await monitor({ manifests: unlisted })
    expect(report).toMatchObject({ conclusion: 'not-in-manifest', proven: 0, completeTo: 0 })
    expect(kindsOf(report)).toEqual(['receipt-not-listed 0', 'receipt-not-listed 1'])
    node.mine(foreign(2))
    expect(await monitor({ manifests: unlisted, graceS: 0 })).toMatchObject({ conclusion: 'used-elsewhere' })
  })

  test('may be reported if the evidence of an unlisted receipt is missing', async () => {
    send(first)
    network.blocks.delete(toCid(first.collateral))
    const unlisted = manifests.map((one) => ({ ...one, enclave: { ...one.enclave, configHashes: ['c1'.repeat(32)] } }))
    expect(await monitor({ manifests: unlisted })).toMatchObject({ conclusion: 'receipt-failed' })
  })

  test('is found if a receipt was tampered with and published under a new CID', async () => {
    const text = new TextDecoder().decode(first.bytes).replace(/"signedAt":"2026-03-01T12/, '"signedAt":"2026-03-01T11')
    const bytes = Uint8Array.from(new TextEncoder().encode(text))
    network.blocks.set(toCid(bytes), bytes)
    node.mine(own(first, 0))
    node.publish({ ...first, cid: toCid(bytes) })
    expect(kindsOf(await monitor())).toEqual(['receipt-failed 0'])
  })

  test('ignores events of another contract or wallet', async () => {
    node.mine(own(first, 0))
    node.publish(first, { address: stranger })
    node.publish(first, {
      topics: [topicsOf(first)[0], `0x${stranger.slice(2).padStart(64, '0')}`, hashOf(first.receipt)],
    })
    expect(kindsOf(await monitor({ graceS: 0 }))).toEqual(['no-receipt 0', 'wallet-unknown'])
  })

  test('many nonces without a receipt end the search, and the rest is a gap', async () => {
    for (let nonce = 0; nonce < 40; nonce++) node.mine(foreign(nonce))
    const report = await monitor({ graceS: 0 })
    expect(report.findings).toHaveLength(18)
    expect(report.findings.at(-2)).toMatchObject({ kind: 'not-judged', nonces: [16, 39] })
    expect(report).toMatchObject({ proven: 0, completeTo: 0 })
  })
})

function topicsOf({ receipt }: FakeIssue): string[] {
  const { from, txHash } = nameSignature(receipt)
  return [
    '0x1a85ecbef58dd9f2ba6c675cd83d16bb690e0c547fc5aea56486a4ba6c253601',
    `0x${from.slice(2).padStart(64, '0')}`,
    txHash,
  ]
}

describe('nonces that authorizations use (EIP-7702)', () => {
  test('are explained by the receipt of the authorization, and code on the account is a warning', async () => {
    send(first)
    node.mine({ hash: `0x${'aa'.repeat(32)}`, from: stranger, nonce: 4, authorizationList: [toItem(authorized)] })
    node.publish(authorized)
    const head = node.blocks.at(-1)
    if (head) head.code = `0xef0100${'7e'.repeat(20)}`
    const report = await monitor()
    expect(report).toMatchObject({ conclusion: 'complete', proven: 2, completeTo: 2 })
    expect(kindsOf(report)).toEqual(['authorization 1', 'code'])
    expect(describeReport(report).findings[1]).toMatchObject({
      severity: 'warning',
      text: expect.stringContaining('7e7e'),
    })
  })

  test('are alarms if the wallet signed another authorization than the one with a receipt', async () => {
    send(first)
    node.mine({ hash: `0x${'aa'.repeat(32)}`, from: stranger, nonce: 4, authorizationList: [toItem(unpublished)] })
    node.publish(authorized)
    const { conclusion, findings } = await monitor({ graceS: 0 })
    expect(conclusion).toBe('used-elsewhere')
    expect(findings).toMatchObject([{ kind: 'no-receipt', nonces: [1, 1], txHash: hashOf(unpublished.receipt) }])
  })

  test('are not explained by an authorization in the same block that came too early to take effect', async () => {
    node.mine(
      { hash: `0x${'aa'.repeat(32)}`, from: stranger, nonce: 4, authorizationList: [toItem(authorized)] },
      own(first, 0),
      { hash: `0x${'ab'.repeat(32)}`, from: stranger, nonce: 5, authorizationList: [toItem(unpublished)] },
    )
    node.publish(first)
    node.publish(authorized)
    const report = await monitor({ graceS: 0 })
    expect(report).toMatchObject({ conclusion: 'used-elsewhere', proven: 1, completeTo: 1 })
    expect(report.findings).toMatchObject([{ kind: 'no-receipt', nonces: [1, 1], txHash: hashOf(unpublished.receipt) }])
  })

  test('are proven only if each possible authorization of the block is', async () => {
    const address = `0x${'7f'.repeat(20)}` as const
    const another = await issueGoldenV2({
      signedAt,
      treeSize: 1,
      leafIndex: 0,
      batchSequence: 0,
      signing: { kind: 'authorization', authorization: { nonce: 1, address } },
      settings: { implementations: [address] },
    })
    addBlocks(another)
    send(first)
    const authorizationList = [toItem(authorized), toItem(another), toItem(authorized)]
    node.mine({ hash: `0x${'aa'.repeat(32)}`, from: stranger, nonce: 4, authorizationList })
    node.publish(authorized)
    node.publish(another)
    const request = { manifests: [...manifests, toManifest(another)] }
    const report = await monitor(request)
    expect(report).toMatchObject({ conclusion: 'complete', proven: 2, completeTo: 2 })
    expect(kindsOf(report)).toEqual(['authorization 1', 'authorization 1'])
    network.blocks.delete(another.cid)
    expect(await monitor(request)).toMatchObject({ conclusion: 'incomplete', proven: 1, completeTo: 1 })
  })

  test('are not explained by a receipt if a transaction from elsewhere used the nonce', async () => {
    send(first)
    node.publish(authorized)
    node.mine(foreign(1))
    expect(kindsOf(await monitor({ graceS: 0 }))).toEqual(['no-receipt 1'])
  })

  test('code that may have used a nonce is a warning, not an alarm', async () => {
    send(first)
    const number = node.mine({
      hash: `0x${'aa'.repeat(32)}`,
      from: stranger,
      nonce: 4,
      authorizationList: [{ nonce: '0x1' }],
    })
    const block = node.blocks[number]
    if (block) block.code = '0xef0100'
    expect(await monitor()).toMatchObject({ conclusion: 'complete', proven: 1, completeTo: 2 })
  })
})

describe('unavailable data is never complete', () => {
  test.each([
    ['a receipt that no gateway has', { gone: true }, {}, 'receipt-unavailable 0'],
    ['a receipt of code without an anchor', {}, { manifests: [], contract }, 'receipt-not-accepted 0'],
    ['simulated evidence without leave', {}, { allowMock: false }, 'receipt-not-accepted 0'],
    ['more receipts than the limit of one run', {}, { maxReceipts: 0 }, 'not-judged 0'],
  ])('%s', async (_, { gone }: { gone?: boolean }, change, finding) => {
    send(first)
    if (gone) network.blocks.delete(first.cid)
    const report = await monitor(change)
    expect(report).toMatchObject({ conclusion: 'incomplete', proven: 0, completeTo: 0 })
    expect(kindsOf(report)).toEqual([finding])
  })

  test('a node without old state, and another receipt that may be the missing one', async () => {
    send(first)
    node.publish(authorized)
    node.mine(foreign(1))
    node.rest(200)
    node.firstState = 100
    expect(kindsOf(await monitor())).toEqual(['not-shown 1'])
  })

  const answering =
    (asked: string, answer: (params: readonly unknown[]) => unknown) => (method: string, params: readonly unknown[]) =>
      method === asked ? answer(params) : undefined
  const byBlock = (early: string, late: string) =>
    answering('eth_getTransactionCount', ([, block]) => (Number(block) > 10 ? late : early))
  const lies: [string, ReturnType<typeof answering>][] = [
    ['counts fewer transactions than it has', byBlock('0x1', '0x1')],
    ['counts more early than late', byBlock('0x9', '0x3')],
    ['counts a transaction that no block has', byBlock('0x2', '0x3')],
    ['has no count', byBlock('many', 'many')],
    [
      'says another nonce than was signed',
      answering('eth_getTransactionByHash', ([hash]) => {
        const nonce = hash === hashOf(second.receipt) ? '0x0' : '0x1'
        return { ...own(second, 0), nonce, hash, blockNumber: '0x1' }
      }),
    ],
    [
      'answers with another transaction',
      answering('eth_getTransactionByHash', () => {
        return { ...own(first, 0), nonce: '0x0', hash: `0x${'00'.repeat(32)}`, blockNumber: '0x1' }
      }),
    ],
    ['is reorganised meanwhile', answering('eth_getLogs', () => void Object.assign(node, { fork: 1 }))],
    ['searches no events', answering('eth_getLogs', () => new Error('no'))],
  ]
  test.each(lies)('a node that %s', async (_, lie) => {
    send(first, second)
    node.lie = lie
    await expect(monitor()).rejects.toMatchObject({ code: 'chain_unavailable' })
  })

  test('a node of another chain', async () => {
    await expect(monitor({ chainId: 1 })).rejects.toMatchObject({ code: 'chain_unavailable' })
  })
})

describe('signatures from before there were receipts', () => {
  test.each([{ nonce: 1 }, { block: 9 }])('are ignored from %o on, and the report says so', async (from) => {
    node.mine(foreign(0))
    node.mine(own(second, 1))
    node.publish(second)
    const report = await monitor({ from, graceS: 0 })
    expect(report).toMatchObject({ conclusion: 'complete', fromNonce: 1, proven: 1, completeTo: 2 })
    expect(describeReport(report).headline).toContain('from nonce 1 on')
  })

  test('rejects a start that the wallet has not reached', async () => {
    await expect(monitor({ from: { nonce: 1 } })).rejects.toMatchObject({ code: 'invalid_arguments' })
  })
})
