import type { LogEntry } from '@countersign/log'
import { nameSignature, toCid } from '@countersign/receipt'
import type { SimulatedAttestation } from '@countersign/receipt/simulator'
import { beforeEach, describe, expect, test } from 'vitest'
import { createFetchBytes } from '../fetchBytes.ts'
import { type FakeIssue, issue, issueGoldenV2, signedAt, toManifest } from '../issues.fake.ts'
import { apiBaseUrl, createFakeNetwork, type FakeNetwork, gatewayUrl, rpcUrl } from '../network.fake.ts'
import { emptyManifest } from '../parseManifest.ts'
import { describeReport } from './describeReport.ts'
import { createFakeLog, type FakeLog, logReceipt, nameEntry, origin } from './log/log.fake.ts'
import { createLogsMemory, formatMonitorState, type LogsMemory, parseMonitorState } from './log/logMemory.ts'
import { type MonitorRequest, monitorWallet } from './monitorWallet.ts'
import { createFakeNode } from './node.fake.ts'

const now = new Date('2026-07-01T00:00:00Z')
const bootMs = signedAt.getTime() - 60_000
const boot = (at: number): LogEntry => ({
  ...{ kind: 'boot', bootId: `${at}`.padStart(32, 'b'), configHash: 'c0'.repeat(32) },
  timeMs: bootMs + at * 1000,
})
const later = (seconds: number) => new Date(signedAt.getTime() + seconds * 1000)
const plain = { treeSize: 1, leafIndex: 0, batchSequence: 0 }

/** Two transactions and a message, in the log in this order. */
const history = createFakeLog()
history.append(boot(0))
const setting = { log: { origin } }
const first = logReceipt(history, await issueGoldenV2({ ...plain, ...setting, signedAt, txMetadata: { nonce: 0 } }))
const message = logReceipt(
  history,
  await issueGoldenV2({ ...plain, ...setting, signedAt: later(1), signing: { kind: 'message' } }),
)
const second = logReceipt(
  history,
  await issueGoldenV2({ ...plain, ...setting, signedAt: later(2), txMetadata: { nonce: 1 } }),
)
const all = [first, message, second]
/** Signed, and published by nobody. */
const secret = await issueGoldenV2({ ...plain, ...setting, signedAt: later(3), signing: { kind: 'typed-data' } })
const old = await issue({ signedAt: later(-3600), txMetadata: { nonce: 0 } })
const unlogged = await issue({ signedAt: later(5), txMetadata: { nonce: 2 } })
const wallet = nameSignature(first.receipt).from
const manifests = [toManifest(first), toManifest(old)]
const { keyId, leaf: secretLeaf } = nameEntry(secret)
const strangers = 'ee'.repeat(16)

let network: FakeNetwork
let node: ReturnType<typeof createFakeNode>
let log: FakeLog
beforeEach(() => {
  network = createFakeNetwork(old)
  node = createFakeNode({ wallet })
  // The manifest's contract begins at block 7.
  node.rest(7)
  serve(createFakeLog(history.entries))
  network.routes.push([rpcUrl, node.answer])
  for (const { bytes, collateral, blocks = {} } of [...all, old, unlogged] as FakeIssue[]) {
    for (const block of [bytes, collateral, ...Object.values(blocks)])
      network.blocks.set(toCid(block), Uint8Array.from(block))
  }
})

function serve(served: FakeLog) {
  log = served
  log.cosignedAtS = now.getTime() / 1000 - 60
  network.routes.unshift([`${apiBaseUrl}/log`, (url) => log.answer(url)])
}

/** On the chain, and published; then an hour goes by. */
function publish(...issues: readonly FakeIssue[]) {
  for (const one of issues) {
    const { chainId, txHash } = nameSignature(one.receipt)
    const nonce =
      'transaction' in one.receipt
        ? one.receipt.transaction.nonce
        : 'nonce' in one.receipt.subject
          ? one.receipt.subject.nonce
          : 0
    if (chainId !== 0) node.mine({ hash: txHash, from: wallet, nonce })
    node.publish(one)
  }
  node.rest(60)
}

function look(change: Partial<MonitorRequest> = {}, logs: LogsMemory = createLogsMemory()) {
  const deps = {
    fetchBytes: createFetchBytes({ fetch: network.fetch, timeoutMs: 5_000 }),
    now: () => now,
    logs,
  }
  const request = { address: wallet, rpc: rpcUrl, manifests, gateways: [gatewayUrl], allowMock: true, log: apiBaseUrl }
  return monitorWallet(deps, { ...request, ...change })
}

/** As a reader gives it who knows the witnesses. */
const withPolicy = () => [...manifests, { ...emptyManifest, log: { witnesses: log.witnesses, quorum: 2 } }]

const signature = ({ leaf = secretLeaf, key = keyId, timeMs = later(3).getTime() } = {}): LogEntry => ({
  ...{ kind: 'signature', keyId: key, leaf, timeMs },
})
const ending = (kind: 'dropped' | 'unacknowledged', issued: SimulatedAttestation = secret): LogEntry => ({
  ...{ kind, ...nameEntry(issued), timeMs: later(40).getTime() },
})

const kindsOf = ({ findings }: { findings: readonly { kind: string; index?: number }[] }) =>
  findings.map(({ kind, index }) => `${kind} ${index ?? ''}`.trim())

describe('an honest log', () => {
  test('raises nothing, and is complete up to its size', async () => {
    publish(...all)
    const report = await look()
    expect(report).toMatchObject({ conclusion: 'complete', proven: 2, completeTo: 2, findings: [] })
    expect(report.logs).toMatchObject([{ origin, size: 4, entries: 3, proven: 3, dropped: 0 }])
    expect(describeReport(report).headline).toBe('2 of 2 transactions have a proof; complete up to size 4 and nonce 2.')
    expect(describeReport(report).logs[0]).toContain('3 signatures of this wallet, 3 with a proof')
  })

  test('may erase what nobody got, and have the entries of others', async () => {
    publish(...all)
    log.append(signature())
    log.append(signature({ key: strangers, leaf: 'aa'.repeat(32) }))
    log.append(ending('dropped'))
    log.append(boot(90))
    const report = await look()
    expect(report).toMatchObject({ conclusion: 'complete', logs: [{ size: 8, entries: 4, proven: 3, dropped: 1 }] })
  })

  test('that the service keeps, and that no address is known of, is a warning', async () => {
    publish(...all)
    const { log: _, ...request } = { address: wallet, rpc: rpcUrl, manifests, gateways: [gatewayUrl], log: '' }
    const fetchBytes = createFetchBytes({ fetch: network.fetch, timeoutMs: 5_000 })
    const report = await monitorWallet({ fetchBytes, now: () => now }, { ...request, allowMock: true })
    expect(report).toMatchObject({ conclusion: 'complete', logs: undefined })
    expect(kindsOf(report)).toEqual(['log-not-checked'])
    expect(describeReport(report).unseen).toContain('signed messages')
  })

  test('of a service without one is not missed', async () => {
    network.routes.unshift([`${apiBaseUrl}/log`, () => new Response(null, { status: 404 })])
    publish(old)
    expect(await look()).toMatchObject({ conclusion: 'complete', logs: undefined, findings: [] })
  })
})

describe('signatures that are not in the log', () => {
  test('from before it are explained and counted', async () => {
    serve(createFakeLog([boot(0)]))
    publish(old)
    const report = await look({ manifests: withPolicy() })
    expect(report).toMatchObject({ conclusion: 'complete', proven: 1, completeTo: 1, logs: [{ size: 1, entries: 0 }] })
    expect(report.findings).toEqual([{ kind: 'before-log', count: 1 }])
    expect(describeReport(report).findings).toEqual([
      { severity: 'note', text: '1 signature is from before there was a log.' },
    ])
  })

  test('nor looked for where no receipt names its witnesses', async () => {
    publish(old)
    const report = await look()
    expect(report).toMatchObject({ conclusion: 'complete', logs: [] })
    expect(kindsOf(report)).toEqual(['log-not-checked'])
  })

  test('from after it are of a key that is used elsewhere', async () => {
    publish(...all, unlogged)
    const report = await look()
    expect(report.conclusion).toBe('used-elsewhere')
    expect(report.findings).toMatchObject([{ kind: 'not-logged', txHash: nameSignature(unlogged.receipt).txHash }])
  })

  test('and without a receipt are of a key that is used elsewhere', async () => {
    publish(...all)
    node.mine({ hash: `0x${'f0'.repeat(32)}`, from: wallet, nonce: 2 })
    node.rest(60)
    const report = await look()
    expect(report).toMatchObject({ conclusion: 'used-elsewhere', completeTo: 2 })
    expect(kindsOf(report)).toEqual(['no-receipt'])
  })
})

describe('entries without a receipt', () => {
  test('of a boot that lives are hidden', async () => {
    publish(...all)
    log.append(signature())
    const report = await look()
    expect(report.conclusion).toBe('hidden')
    expect(report.findings).toEqual([{ kind: 'hidden', origin, index: 4, leaf: secretLeaf }])
    expect(describeReport(report).headline).toMatch(/^Something is hidden\. 2 of 2 transactions have a proof/)
  })

  test('are awaited for a while', async () => {
    publish(...all)
    log.append(signature({ timeMs: later(75 * 60).getTime() }))
    expect(kindsOf(await look({ graceS: 3600 }))).toEqual(['entry-awaited 4'])
    expect(await look({ graceS: 3600 })).toMatchObject({ conclusion: 'incomplete' })
  })

  test.each([
    ['of a boot that is over', [signature(), boot(50)]],
    ['that the enclave reported', [signature(), ending('unacknowledged')]],
  ])('%s are unresolved', async (_, entries) => {
    publish(...all)
    for (const entry of entries) log.append(entry)
    const report = await look()
    expect(report.conclusion).toBe('unresolved')
    expect(kindsOf(report)).toEqual(['unresolved 4'])
  })

  test('that the enclave reported, and that have a receipt all the same, are resolved', async () => {
    publish(...all)
    log.append(ending('unacknowledged', second))
    expect(await look()).toMatchObject({ conclusion: 'complete' })
  })

  test('may be of a receipt that cannot be fetched, but two cannot be of one', async () => {
    publish(...all)
    network.blocks.delete(message.cid)
    expect(kindsOf(await look())).toEqual(['receipt-unavailable', 'entry-unmatched 2'])
    log.append(signature())
    const report = await look()
    expect(report.conclusion).toBe('hidden')
    expect(kindsOf(report)).toEqual(['receipt-unavailable', 'hidden 2', 'hidden 4'])
  })

  test('are not hidden by looking at few receipts', async () => {
    publish(...all)
    expect(kindsOf(await look({ maxReceipts: 2 }))).toEqual(['not-judged', 'entry-unmatched 2'])
  })
})

describe('a log that lies', () => {
  const contradictions: [string, () => void][] = [
    ['says that something was erased, and it is mined', () => void log.append(ending('dropped', first))],
    ['says that something was erased, and it has a receipt', () => void log.append(ending('dropped', message))],
    ['has two entries for one signature', () => void log.append(history.entries[1] as LogEntry)],
    ['erases what it does not have', () => void log.append(ending('dropped'))],
    [
      'erases what an earlier boot signed',
      () => {
        for (const entry of [signature(), boot(50), ending('dropped')]) log.append(entry)
      },
    ],
    [
      'erases and reports the same',
      () => {
        for (const entry of [signature(), ending('dropped'), ending('unacknowledged')]) log.append(entry)
      },
    ],
  ]
  test.each(contradictions)('since it %s', async (_, plant) => {
    publish(...all)
    plant()
    const report = await look()
    expect(report.findings.filter(({ kind }) => kind === 'log-lies')).toHaveLength(1)
    expect(['log-lies', 'hidden']).toContain(report.conclusion)
  })

  const lies: [string, () => void, RegExp][] = [
    [
      'too few cosignatures',
      () => {
        log.cosigners = [1]
      },
      /too few witnesses cosigned \(1 of 2\)/,
    ],
    [
      'a cosignature that does not hold',
      () => {
        const note = log.toNote()
        const other = { ...log, cosignedAtS: log.cosignedAtS - 1 }.toNote(3)
        log.lie = (path) =>
          path === 'checkpoint' ? `${note.split('\n\n')[0]}\n\n${other.split('\n\n')[1]}` : undefined
      },
      /a key did not sign this note/,
    ],
    [
      'another key',
      () => {
        log.key = createFakeLog([], 'other').key
      },
      /another key/,
    ],
    [
      'a checkpoint that is none',
      () => {
        log.lie = (path) => (path === 'checkpoint' ? 'x' : undefined)
      },
      /malformed note/,
    ],
    [
      'a root that is not that of its entries',
      () => {
        const other = createFakeLog([...log.entries.slice(0, 3), boot(50)])
        other.cosignedAtS = log.cosignedAtS
        log.lie = (path) => (path === 'checkpoint' ? other.toNote() : undefined)
      },
      /root of its checkpoint of 4 entries is not that of its entries/,
    ],
    [
      'a tile that is not that of its entries',
      () => {
        log.lie = (path) => (path === 'tile/0/000.p/4' ? new Uint8Array(128) : undefined)
      },
      /tile 0 of level 0 is not that of its entries/,
    ],
    [
      'a tile that is cut',
      () => {
        log.lie = (path) => (path === 'tile/0/000.p/4' ? new Uint8Array(96) : undefined)
      },
      /tile 0 of level 0: the tile has another width/,
    ],
    [
      'a bundle that is cut',
      () => {
        log.lie = (path) => (path === 'tile/entries/000.p/4' ? new Uint8Array(59) : undefined)
      },
      /the bundle 0: malformed tile, the bundle has more entries/,
    ],
    [
      'another history than its receipts',
      () => serve(createFakeLog([boot(0), boot(1), boot(2), ...history.entries.slice(1)])),
      /shows two histories: the receipt of 0x\w{64} is in another tree of 2 entries/,
    ],
    ['a beginning without a boot', () => serve(createFakeLog(history.entries.slice(1))), /two histories/],
  ]
  test.each(lies)('by %s', async (_, plant, detail) => {
    publish(...all)
    plant()
    const report = await look()
    const finding = report.findings.find(({ kind }) => kind === 'log-lies')
    expect(finding).toMatchObject({ origin, detail: expect.stringMatching(detail) })
    expect(report.conclusion).toBe('log-lies')
  })

  test('to a reader whose own witnesses did not cosign', async () => {
    publish(...all)
    const [own = ''] = createFakeLog([], 'other').witnesses
    const log = { witnesses: [own], quorum: 1 }
    const { conclusion, findings } = await look({ manifests: [...manifests, { ...toManifest(first), log }] })
    expect(conclusion).toBe('used-elsewhere')
    expect(findings.map(({ kind }) => kind)).toContain('receipt-failed')
  })
})

describe('two checkpoints of one log', () => {
  async function remember(): Promise<LogsMemory> {
    publish(...all)
    const logs = createLogsMemory()
    for (let count = 0; count < 300; count++)
      log.append(signature({ key: strangers, leaf: `${count}`.padStart(64, '0') }))
    expect(await look({}, logs)).toMatchObject({ conclusion: 'complete', logs: [{ size: 304 }] })
    return parseMonitorState(new TextEncoder().encode(formatMonitorState(logs)))
  }
  const other = (size: number) => {
    const entries = Array.from({ length: size - 4 }, (_, count) =>
      signature({ key: strangers, leaf: `f${count}`.padStart(64, '0') }),
    )
    return createFakeLog([...history.entries, ...entries])
  }

  test.each([
    ['of one size', 304],
    ['of which the later does not continue the earlier', 400],
    ['of which the earlier is no part of the later, a tile further', 700],
    ['of which the later is smaller, and no part of the earlier', 270],
  ])('%s show that it is forked, each time it is looked at', async (_, size) => {
    const logs = await remember()
    serve(other(size))
    for (const _time of [1, 2]) {
      const report = await look({}, logs)
      expect(report.conclusion).toBe('log-lies')
      expect(report.findings).toMatchObject([{ origin, detail: expect.stringContaining('two histories') }])
    }
  })

  test('of which the smaller is cosigned later show that its witnesses forgot', async () => {
    const logs = await remember()
    serve(createFakeLog(log.entries.slice(0, 100)))
    log.cosignedAtS += 30
    const report = await look({}, logs)
    expect(report.findings).toMatchObject([
      { kind: 'log-lies', detail: expect.stringContaining('cosigned 304 entries, and later only 100') },
    ])
  })

  test.each([100, 260])('of which the later is smaller are withheld entries: %i of 304', async (size) => {
    const logs = await remember()
    serve(createFakeLog(log.entries.slice(0, size)))
    const report = await look({}, logs)
    expect(report).toMatchObject({ conclusion: 'incomplete' })
    expect(report.findings).toMatchObject([
      { kind: 'log-withholds', detail: `it has ${size} entries now, and had 304 before` },
    ])
  })

  test('of which the later continues the earlier cost only what is new', async () => {
    const logs = await remember()
    for (let count = 0; count < 300; count++)
      log.append(signature({ key: strangers, leaf: `a${count}`.padStart(64, '0') }))
    log.requests.splice(0)
    expect(await look({}, logs)).toMatchObject({ conclusion: 'complete', logs: [{ size: 604, entries: 3 }] })
    const paths = log.requests.map((path) => path.slice(66))
    expect(paths).not.toContain('tile/0/000')
    expect(paths).toContain('tile/0/001')
    expect(paths).toContain('tile/1/000.p/2')
    log.append(signature())
    expect(kindsOf(await look({}, logs))).toEqual(['hidden 604'])
  })

  test('of which the state is that of another log', async () => {
    const logs = await remember()
    const known = [...logs.known.values()].map((one) => ({ ...one, origin: 'log.example/enclave-b' }))
    const moved = { ...createLogsMemory(), known: new Map(known.map((one) => [one.origin, one])) }
    expect((await look({}, moved)).findings).toMatchObject([
      { kind: 'log-withholds', origin: 'log.example/enclave-b', detail: 'the service does not list it any more' },
    ])
  })

  test('of which an earlier look did not know the key are read from the beginning', async () => {
    const logs = await remember()
    for (const [name, one] of logs.known) {
      logs.known.set(name, { ...one, keyIds: [], entries: new Map([...one.entries].slice(0, 1)) })
    }
    expect(await look({}, logs)).toMatchObject({ conclusion: 'complete', logs: [{ size: 304, entries: 3 }] })
  })

  test('the state is refused where a byte of it is another', async () => {
    const text = formatMonitorState(await remember())
    expect(formatMonitorState(parseMonitorState(new TextEncoder().encode(text)))).toBe(text)
    for (let at = 0; at < text.length; at += 97) {
      const changed = `${text.slice(0, at)}${text[at] === '1' ? '2' : '1'}${text.slice(at + 1)}`
      expect(() => parseMonitorState(new TextEncoder().encode(changed))).toThrow(
        expect.objectContaining({ code: 'state_malformed' }),
      )
    }
  })
})

describe('a log that does not show what it has', () => {
  test.each(['checkpoint', 'tile/0/000.p/4', 'tile/entries/000.p/4'])('withholds %s', async (path) => {
    publish(...all)
    log.gone.add(path)
    const report = await look()
    expect(report).toMatchObject({ conclusion: 'incomplete', logs: [] })
    expect(report.findings).toMatchObject([{ kind: 'log-withholds', origin, detail: expect.stringContaining(path) }])
  })

  test('withholds a tile of an upper level', async () => {
    publish(...all)
    for (let count = 0; count < 300; count++)
      log.append(signature({ key: strangers, leaf: `${count}`.padStart(64, '0') }))
    log.gone.add('tile/1/000.p/1')
    expect(kindsOf(await look())).toEqual(['log-withholds'])
  })

  test('withholds the end, which a receipt is in', async () => {
    publish(...all)
    serve(createFakeLog(history.entries.slice(0, 3)))
    const report = await look()
    expect(report.findings).toMatchObject([
      { kind: 'log-withholds', detail: 'it shows 3 entries, and a receipt is in a tree of 4' },
    ])
  })

  test('is not listed', async () => {
    publish(...all)
    network.routes.unshift([`${apiBaseUrl}/log`, () => new Response('{"logs":[]}')])
    expect(kindsOf(await look())).toEqual(['log-withholds'])
  })

  test.each([
    ['fails', () => new Response(null, { status: 503 })],
    ['answers with something else', () => new Response('{"logs":[{}]}')],
  ])('%s', async (_, answer) => {
    publish(...all)
    network.routes.unshift([`${apiBaseUrl}/log`, answer])
    const report = await look()
    expect(report.conclusion).toBe('incomplete')
    expect(kindsOf(report)).toEqual(['log-unavailable'])
  })

  test('is stale where no quorum cosigned it for an hour', async () => {
    publish(...all)
    log.cosignedAtS = now.getTime() / 1000 - 3_601
    const report = await look()
    expect(report).toMatchObject({ conclusion: 'incomplete', findings: [{ kind: 'log-stale', origin }] })
    log.append(signature())
    expect(kindsOf(await look())).toEqual(['log-stale', 'unresolved 4'])
  })

  test('is too large for one look', async () => {
    publish(...all)
    expect(kindsOf(await look({ maxLogEntries: 3 }))).toEqual(['log-unavailable'])
  })
})
