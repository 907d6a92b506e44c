import { encodeBundle, encodeLogEntry, hashOrigin, type LogEntry } from '@countersign/log'
import { parseBlock } from '@countersign/receipt'
import { beforeEach, describe, expect, test } from 'vitest'
import { createFakeLog, type FakeLog, logReceipt, origin, toEntry } from '../../test/monitor/log/log.ts'
import {
  all,
  boot,
  createLoggedWallet,
  ending,
  history,
  issueLogged,
  kindsOf,
  later,
  message,
  now,
  others,
  signature,
  spared,
  spareOrigin,
} from '../../test/monitor/loggedWallet.ts'
import { apiBaseUrl } from '../../test/network.ts'
import { createLogsMemory, formatMonitorState, type LogsMemory, parseMonitorState } from './log/logMemory.ts'

let stack: ReturnType<typeof createLoggedWallet>
beforeEach(() => {
  stack = createLoggedWallet()
})

/** The logs that the service lists. */
const list = (...logs: readonly FakeLog[]) =>
  stack.network.routes.unshift([
    `${apiBaseUrl}/log`,
    (url) => {
      const answers = logs.map((log) => ({ log, hash: hashOrigin(log.name) }))
      if (url.pathname !== '/log') {
        return (answers.find(({ hash }) => url.pathname.includes(hash))?.log ?? stack.log).answer(url)
      }
      const listed = answers.map(({ log, hash }) => ({
        origin: log.name,
        hash,
        key: log.key,
        size: log.close(),
      }))
      return new Response(JSON.stringify({ logs: listed }))
    },
  ])

describe('two checkpoints of one log', () => {
  async function remember(): Promise<LogsMemory> {
    stack.publish(...all)
    const logs = createLogsMemory()
    // With checkpoints of 100 and 260 entries before.
    for (const size of [100, 260, 304]) {
      stack.append(...others(size - 1 - stack.log.entries.length))
      stack.log.close()
    }
    expect(await stack.monitor({}, logs)).toMatchObject({ conclusion: 'complete', logs: [{ size: 304 }] })
    return parseMonitorState(new TextEncoder().encode(formatMonitorState(logs)))
  }
  const toOther = (size: number) => [...history.entries, ...others(size - 5, 'f')]

  test.each([
    ['of one size', 304],
    ['of which the later does not continue the earlier', 400],
    ['of which the earlier is no part of the later, a tile further', 700],
    ['of which the later is smaller, and no part of the earlier', 270],
  ])('%s show in every run that it is forked', async (_, size) => {
    const logs = await remember()
    stack.serve(toOther(size))
    for (const _time of [1, 2]) {
      const report = await stack.monitor({}, logs)
      expect(report.conclusion).toBe('log-lies')
      expect(report.findings).toMatchObject([{ origin, detail: expect.stringContaining('two histories') }])
    }
  })

  test('show two histories if a witness cosigned the smaller one later', async () => {
    const logs = await remember()
    stack.serve(stack.log.entries.slice(0, 100))
    stack.log.cosignedAtS += 30
    const report = await stack.monitor({}, logs)
    expect(report.findings).toMatchObject([
      { kind: 'log-lies', detail: expect.stringContaining('cosigned 304 entries, and later only 100') },
    ])
  })

  test('are no alarm if the smaller one has the later quorum and no witness went back', async () => {
    // The first witness had cosigned everything when the second went from 100 to 304, and the third stayed.
    Object.assign(stack.log, { cosigners: [0, 1], delaysS: [0, 50, 0] })
    const logs = await remember()
    stack.serve(stack.log.entries.slice(0, 100))
    Object.assign(stack.log, { cosigners: [1, 2], delaysS: [0, 20, 30] })
    expect(kindsOf(await stack.monitor({}, logs))).toEqual(['log-withholds'])
    stack.log.delaysS = [0, 51, 52]
    expect(kindsOf(await stack.monitor({}, logs))).toEqual(['log-lies'])
  })

  test.each([100, 260])('of which the later is smaller show withheld entries: %i of 304', async (size) => {
    const logs = await remember()
    stack.serve(stack.log.entries.slice(0, size))
    const report = await stack.monitor({}, logs)
    expect(report).toMatchObject({ conclusion: 'incomplete' })
    expect(report.findings).toMatchObject([
      { kind: 'log-withholds', detail: `it has ${size} entries now, but had 304 before` },
    ])
  })

  test('of which the later continues the earlier need only the new entries', async () => {
    const logs = await remember()
    stack.append(...others(300, 'a'))
    stack.log.requests.splice(0)
    expect(await stack.monitor({}, logs)).toMatchObject({ conclusion: 'complete', logs: [{ size: 605, entries: 3 }] })
    const paths = stack.log.requests.map((path) => path.slice(66))
    expect(paths).not.toContain('tile/0/000')
    expect(paths).toContain('tile/0/001')
    expect(paths).toContain('tile/1/000.p/2')
    stack.log.append(signature())
    expect(kindsOf(await stack.monitor({}, logs))).toEqual(['hidden 605'])
  })

  test('of which the state belongs to another log', async () => {
    const logs = await remember()
    const known = [...logs.known.values()].map((one) => ({ ...one, origin: 'log.example/enclave-b' }))
    const moved = { ...createLogsMemory(), known: new Map(known.map((one) => [one.origin, one])) }
    expect((await stack.monitor({}, moved)).findings).toMatchObject([
      {
        kind: 'log-withholds',
        origin: 'log.example/enclave-b',
        detail: 'the service does not show it, but it is in use',
      },
    ])
  })

  test('are read from the beginning for a new key', async () => {
    const logs = await remember()
    for (const [name, one] of logs.known) {
      logs.known.set(name, { ...one, keyIds: [], entries: new Map([...one.entries].slice(0, 1)) })
    }
    expect(await stack.monitor({}, logs)).toMatchObject({ conclusion: 'complete', logs: [{ size: 304, entries: 3 }] })
  })

  test('the state is rejected after any changed byte', async () => {
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

describe('a log that does not show all entries', () => {
  test.each(['checkpoint', 'tile/0/000.p/5', 'tile/entries/000.p/5'])('withholds %s', async (path) => {
    stack.publish(...all)
    stack.log.gone.add(path)
    const report = await stack.monitor()
    expect(report).toMatchObject({ conclusion: 'incomplete', logs: [] })
    expect(report.findings).toMatchObject([{ kind: 'log-withholds', origin, detail: expect.stringContaining(path) }])
  })

  test.each([
    ['no bundle', () => new TextEncoder().encode('<html>Bad gateway</html>')],
    ['the entries of others', () => encodeBundle(others(256).map(encodeLogEntry))],
  ])('responds once with %s, and is fully read later', async (_, answer) => {
    stack.publish(...all)
    stack.append(...others(300))
    const logs = createLogsMemory()
    stack.log.lie = (path) => (path === 'tile/entries/000' ? answer() : undefined)
    expect(kindsOf(await stack.monitor({}, logs))).toEqual(['log-lies'])
    stack.log.lie = () => undefined
    expect(await stack.monitor({}, logs)).toMatchObject({ conclusion: 'complete', findings: [] })
  })

  test('lies if a bundle is larger than its entries can be, and the rest is not read', async () => {
    stack.publish(...all)
    stack.append(...others(300))
    stack.log.lie = (path) => (path === 'tile/entries/000' ? new Uint8Array(256 * 59 + 1) : undefined)
    expect(kindsOf(await stack.monitor())).toEqual(['log-lies'])
  })

  test('withholds a tile of an upper level', async () => {
    stack.publish(...all)
    stack.append(...others(300))
    stack.log.gone.add('tile/1/000.p/1')
    expect(kindsOf(await stack.monitor())).toEqual(['log-withholds'])
  })

  test('withholds the end, which includes a receipt', async () => {
    stack.log.close()
    const next = logReceipt(stack.log, await issueLogged(5, { txMetadata: { nonce: 2 } }))
    stack.addBlocks(next)
    stack.publish(...all, next)
    stack.serve(stack.log.entries.slice(0, 5))
    const report = await stack.monitor()
    expect(report.findings).toMatchObject([
      { kind: 'log-withholds', detail: 'it shows 5 entries, but a receipt is in a tree of 6' },
    ])
  })

  test('lies if its checkpoint does not end with the root of the table of budgets', async () => {
    stack.publish(...all)
    stack.log.isClosing = false
    const report = await stack.monitor()
    expect(report.conclusion).toBe('log-lies')
    expect(report.findings).toMatchObject([{ kind: 'log-lies', origin, detail: expect.stringContaining('table') }])
  })

  test('is not listed', async () => {
    stack.publish(...all)
    stack.network.routes.unshift([`${apiBaseUrl}/log`, () => new Response('{"logs":[]}')])
    expect(kindsOf(await stack.monitor())).toEqual(['log-withholds'])
  })

  test.each([
    ['says that it has none', 'log-withholds', () => new Response(null, { status: 404 })],
    ['lists none', 'log-withholds', () => new Response('{"logs":[]}')],
    ['fails', 'log-unavailable', () => new Response(null, { status: 500 })],
  ])('is missed where the service %s, and nothing that is on the chain names it', async (_, kind, answer) => {
    stack.publish(message)
    stack.network.routes.unshift([`${apiBaseUrl}/log`, answer])
    const report = await stack.monitor()
    expect(report).toMatchObject({ conclusion: 'incomplete', nonce: 0, logs: [] })
    expect(kindsOf(report)).toEqual([kind])
  })

  test('may be named by an unavailable receipt', async () => {
    stack.publish(message)
    stack.network.blocks.delete(message.cid)
    stack.network.routes.unshift([`${apiBaseUrl}/log`, () => new Response('{"logs":[]}')])
    const report = await stack.monitor()
    expect(report).toMatchObject({ conclusion: 'incomplete', logs: undefined })
    expect(kindsOf(report)).toEqual(['receipt-unavailable'])
  })

  test.each([
    ['fails', () => new Response(null, { status: 503 })],
    ['answers with something else', () => new Response('{"logs":[{}]}')],
  ])('%s', async (_, answer) => {
    stack.publish(...all)
    stack.network.routes.unshift([`${apiBaseUrl}/log`, answer])
    const report = await stack.monitor()
    expect(report.conclusion).toBe('incomplete')
    expect(kindsOf(report)).toEqual(['log-unavailable'])
  })

  test('is fully read if the service limits the request rate, but only with waiting', async () => {
    stack.publish(...all)
    let refused = 0
    stack.network.routes.unshift([
      `${apiBaseUrl}/log/`,
      (url) => (refused++ % 3 === 0 ? new Response(null, { status: 429 }) : stack.log.answer(url)),
    ])
    const waits: number[] = []
    const wait = async (ms: number) => waits.push(ms) > 0
    expect(await stack.monitor({}, createLogsMemory(), { wait })).toMatchObject({
      conclusion: 'complete',
      findings: [],
    })
    expect(waits.length).toBeGreaterThan(0)
    expect(kindsOf(await stack.monitor())).toEqual(['log-unavailable'])
  })

  test('is stale if no quorum has cosigned it for an hour', async () => {
    stack.publish(...all)
    stack.log.cosignedAtS = now.getTime() / 1000 - 3_601
    const report = await stack.monitor()
    expect(report).toMatchObject({ conclusion: 'incomplete', findings: [{ kind: 'log-stale', origin }] })
    stack.log.append(signature())
    expect(kindsOf(await stack.monitor())).toEqual(['log-stale', 'unresolved 5'])
  })

  test('is not complete if a quorum dates it a day ahead', async () => {
    stack.publish(...all)
    stack.log.cosignedAtS = now.getTime() / 1000 + 86_400
    expect(await stack.monitor()).toMatchObject({ conclusion: 'incomplete', findings: [{ kind: 'log-ahead', origin }] })
  })

  test('is complete if one witness dates it a day ahead', async () => {
    stack.publish(...all)
    stack.log.delaysS = [86_400, 0, 0]
    expect(await stack.monitor()).toMatchObject({ conclusion: 'complete', findings: [] })
  })

  test('is too large for one run, unless an earlier run read most of it', async () => {
    stack.publish(...all)
    expect(kindsOf(await stack.monitor({ maxLogEntries: 3 }))).toEqual(['log-unavailable'])
    const logs = createLogsMemory()
    await stack.monitor({}, logs)
    stack.append(...others(300))
    expect(await stack.monitor({ maxLogEntries: 301 }, logs)).toMatchObject({ conclusion: 'complete' })
    stack.append(...others(301, 'a'))
    expect((await stack.monitor({ maxLogEntries: 301 }, logs)).findings).toMatchObject([
      { kind: 'log-unavailable', detail: '302 entries are unread, and one run reads at most 301' },
    ])
  })
})

describe('a second log, that no settings name', () => {
  const createSecond = (seed?: string) => {
    const log = createFakeLog([boot(0), signature()], seed, spareOrigin)
    log.cosignedAtS = stack.log.cosignedAtS
    return log
  }

  test('is read with the witnesses of the others', async () => {
    stack.publish(...all)
    list(stack.log, createSecond())
    const report = await stack.monitor()
    expect(report.conclusion).toBe('hidden')
    expect(report.findings).toMatchObject([{ kind: 'hidden', origin: spareOrigin, index: 1 }])
  })

  test('continues the history of a start from the first', async () => {
    stack.publish(...all)
    stack.append(signature())
    const start = { ...boot(0), timeMs: later(1).getTime() }
    const moved = createFakeLog([start, ending('dropped')], undefined, spareOrigin)
    moved.cosignedAtS = stack.log.cosignedAtS
    list(stack.log, moved)
    const logs = [{ entries: 4, dropped: 1 }, { entries: 0 }]
    expect(await stack.monitor()).toMatchObject({ conclusion: 'complete', logs })
    moved.append(boot(90))
    stack.append(signature({ leaf: '77'.repeat(32) }))
    expect(kindsOf(await stack.monitor())).toEqual(['unresolved 6'])
  })

  test('gives no findings about a missing first log', async () => {
    stack.publish(...all)
    const moved = createFakeLog([boot(0), ending('dropped')], undefined, spareOrigin)
    moved.cosignedAtS = stack.log.cosignedAtS
    list(stack.log, moved)
    stack.log.gone.add('checkpoint')
    expect(kindsOf(await stack.monitor())).toEqual(['log-withholds'])
  })

  test('does not lie if its witnesses are unknown', async () => {
    stack.publish(...all)
    list(stack.log, createSecond('other'))
    expect((await stack.monitor()).findings).toMatchObject([{ kind: 'log-not-checked', origin: spareOrigin }])
  })
})

describe('a log that an enclave left for its spare', () => {
  const second = (...entries: readonly LogEntry[]) => {
    const log = createFakeLog([boot(0), ...entries], undefined, spareOrigin)
    log.cosignedAtS = stack.log.cosignedAtS
    return log
  }

  test.each([
    ['is settled by entries of the spare one', [signature()], [ending('dropped')], []],
    ['or by entries about what no witness has seen', [], [ending('dropped')], []],
    ['is unresolved where those say so', [signature()], [ending('unacknowledged')], ['unresolved 4']],
    ['whether or not witnesses have seen it', [], [ending('unacknowledged')], ['unresolved 1']],
    ['is hidden where nothing is said', [signature()], [], ['hidden 4']],
    ['lies where what it erased comes again', [signature(), ending('dropped')], [signature()], ['log-lies 5']],
    ['lies where all is said twice', [signature(), ending('dropped')], [ending('dropped')], ['log-lies 1']],
  ])('%s', async (_, left, spare, kinds) => {
    stack.publish(...all)
    stack.append(...left)
    for (const logs of [
      [stack.log, second(...spare)],
      [second(...spare), stack.log],
    ]) {
      list(...logs)
      expect(kindsOf(await stack.monitor()).toSorted()).toEqual(kinds.toSorted())
    }
  })

  test('lies if it erased a signature that has a receipt, even if the first log cannot be read', async () => {
    stack.publish(...all)
    const { bootId } = parseBlock('batch', message.blocks.batch)
    const start = { ...boot(0), bootId } as LogEntry
    const spare = createFakeLog([start, ending('dropped', message)], undefined, spareOrigin)
    spare.cosignedAtS = stack.log.cosignedAtS
    list(stack.log, spare)
    stack.log.gone.add('checkpoint')
    expect(kindsOf(await stack.monitor())).toEqual(['log-withholds', 'log-lies 1'])
  })

  test('lies if it erases a signature that it does not contain, and the service lists the spare as unused', async () => {
    stack.publish(spared)
    stack.serve([boot(0), toEntry(spared), ending('dropped', message)])
    expect(kindsOf(await stack.monitor())).toContain('log-lies 2')
  })

  test('does not make the spare lie while it cannot be read', async () => {
    stack.publish(...all)
    list(stack.log, second(ending('dropped')))
    stack.log.gone.add('checkpoint')
    expect(kindsOf(await stack.monitor())).toEqual(['log-withholds'])
  })
})
