import { beforeEach, describe, expect, test } from 'vitest'
import { apiBaseUrl, json } from '../network.fake.ts'
import { hashOrigin } from './log/createLogSource.ts'
import { createFakeLog, type FakeLog, origin, toEntry } from './log/log.fake.ts'
import { createLogsMemory } from './log/logMemory.ts'
import {
  all,
  boot,
  createLoggedWallet,
  history,
  kindsOf,
  now,
  others,
  signature,
  spared,
  spareOrigin,
} from './loggedWallet.fake.ts'

let stack: ReturnType<typeof createLoggedWallet>
beforeEach(() => {
  stack = createLoggedWallet()
})

describe('witnesses that are asked themselves', () => {
  const urls = ['https://w1.test', 'https://w2.test', 'https://w3.test']
  /** Each answers with what this log has, and cosigns it when it is asked; undefined for nothing. */
  function answer(...logs: readonly (FakeLog | undefined)[]) {
    for (const [place, log] of logs.entries()) {
      if (log !== undefined) Object.assign(log, { cosigners: [place], cosignedAtS: now.getTime() / 1000 })
      stack.network.routes.push([
        urls[place] as string,
        ({ pathname }) =>
          log === undefined || pathname !== `/${hashOrigin(origin)}/checkpoint`
            ? new Response(null, { status: 404 })
            : new Response(log.toNote()),
      ])
    }
    return { witnessUrls: urls.slice(0, logs.length) }
  }
  const same = () => createFakeLog(history.entries)
  const longer = () => createFakeLog([...history.entries, signature()])

  test('and know the same raise nothing, and a log that rests is not stale', async () => {
    stack.publish(...all)
    stack.log.cosignedAtS = now.getTime() / 1000 - 86_400
    expect(await stack.look(answer(same(), same()))).toMatchObject({ conclusion: 'complete', findings: [] })
    expect(kindsOf(await stack.look({ witnessUrls: urls.slice(0, 1) }))).toEqual(['log-stale'])
  })

  test('are counted by their keys, and those who know of nothing do not say that it is fresh', async () => {
    stack.publish(...all)
    stack.log.cosignedAtS = now.getTime() / 1000 - 86_400
    const [one] = answer(same(), undefined, undefined).witnessUrls
    stack.network.routes.push([
      'https://also-w1.test',
      () => new Response(Object.assign(same(), { cosigners: [0], cosignedAtS: stack.log.cosignedAtS }).toNote()),
    ])
    expect(kindsOf(await stack.look({ witnessUrls: urls }))).toEqual(['log-stale'])
    expect(kindsOf(await stack.look({ witnessUrls: [one, 'https://also-w1.test'] as string[] }))).toEqual(['log-stale'])
  })

  describe('and a quorum of which has more than the service shows', () => {
    const waits: number[] = []
    const wait = async (ms: number) => waits.push(ms) > 0
    const countWaited = () => waits.splice(0).reduce((sum, ms) => sum + ms, 0)
    const ahead = 'it shows 4 entries, and its witnesses cosigned 5'
    beforeEach(() => {
      stack.publish(...all)
      countWaited()
    })

    test('show that it withholds them, after a minute; the next look does not wait again', async () => {
      const change = answer(longer(), longer(), same())
      const logs = createLogsMemory()
      const withheld = { conclusion: 'incomplete', findings: [{ kind: 'log-withholds', origin, detail: ahead }] }
      expect(await stack.look(change, logs, { wait })).toMatchObject(withheld)
      expect(countWaited()).toBe(60_000)
      expect(await stack.look(change, logs, { wait })).toMatchObject(withheld)
      expect(await stack.look({}, logs, { wait })).toMatchObject(withheld)
      expect(countWaited()).toBe(0)
    })

    test('accuse no service that shows them within that minute', async () => {
      const grown = () => createFakeLog([...history.entries, ...others(1)])
      const change = answer(grown(), grown(), same())
      const logs = createLogsMemory()
      const show = async (ms: number) => {
        if (waits.push(ms) === 3) stack.append(...others(1))
        return true
      }
      const shown = { conclusion: 'complete', findings: [], logs: [{ size: 5 }] }
      expect(await stack.look(change, logs, { wait: show })).toMatchObject(shown)
      expect(logs.unshown.size).toBe(0)
    })

    test('are not judged by in a look that cannot wait', async () => {
      const change = answer(longer(), longer(), same())
      const logs = createLogsMemory()
      expect(await stack.look(change, logs)).toMatchObject({
        ...{
          conclusion: 'incomplete',
          findings: [{ kind: 'log-unavailable', detail: `${ahead}; this look did not wait for those` }],
        },
      })
    })

    test('do not keep it from being called a liar', async () => {
      const report = await stack.look(answer(longer(), longer(), createFakeLog([boot(0), ...others(2)])), undefined, {
        wait,
      })
      expect(report.conclusion).toBe('log-lies')
      expect(countWaited()).toBe(0)
    })
  })

  test('and of which fewer than a quorum are ahead raise nothing', async () => {
    stack.publish(...all)
    expect(await stack.look(answer(longer(), same(), same()))).toMatchObject({ conclusion: 'complete', findings: [] })
  })

  test('and cosigned another history show that the log is forked', async () => {
    stack.publish(...all)
    const report = await stack.look(answer(createFakeLog([boot(0), ...others(2)])))
    expect(report.conclusion).toBe('log-lies')
    expect(report.findings).toMatchObject([{ detail: expect.stringContaining('w1.test cosigned another tree of 3') }])
  })

  describe('and cosigned what the key of the log did not sign', () => {
    /** As a witness makes it up that has no key but its own. */
    function makeUp(): FakeLog {
      const log = createFakeLog([boot(0), ...others(2)])
      const { toNote } = log
      return Object.assign(log, { toNote: () => toNote().replace(`— ${origin} `, '— another.example ') })
    }

    test('do not have it called a liar, and nothing is complete', async () => {
      stack.publish(...all)
      const report = await stack.look(answer(makeUp(), same(), same()))
      expect(report).toMatchObject({
        ...{ conclusion: 'incomplete', logs: [{ size: 4 }] },
        findings: [{ kind: 'witness-contradicts', origin, detail: expect.stringMatching(/^w1\.test: /) }],
      })
    })

    test.each([
      ['a false one', createFakeLog([], 'other', spareOrigin).key],
      ['none', 'no key'],
    ])('are passed over for no service that names %s', async (_, key) => {
      stack.publish(spared)
      stack.serve([boot(0), toEntry(spared)])
      const logs = [stack.log, { name: spareOrigin, key, entries: [] }].map(({ name, key, entries }) => {
        return { origin: name, hash: hashOrigin(name), key, size: entries.length }
      })
      const begun = createFakeLog([boot(0)], undefined, spareOrigin)
      begun.cosignedAtS = stack.log.cosignedAtS
      stack.network.routes.unshift(
        [`${apiBaseUrl}/log`, (url) => (url.pathname === '/log' ? json({ logs }) : stack.log.answer(url))],
        [`${urls[0]}/${hashOrigin(spareOrigin)}`, () => new Response(begun.toNote())],
      )
      const { conclusion, findings } = await stack.look(answer(undefined))
      expect(conclusion).toBe('incomplete')
      expect(findings).toContainEqual(expect.objectContaining({ kind: 'witness-contradicts', origin: spareOrigin }))
    })
  })

  test('and answer with what they did not cosign are not believed', async () => {
    stack.publish(...all)
    const change = answer(createFakeLog(longer().entries, 'other'))
    const report = await stack.look(change)
    expect(report).toMatchObject({ conclusion: 'complete', findings: [{ kind: 'witness-unavailable' }] })
  })

  test('know whether a log was begun that the service does not list', async () => {
    stack.publish(spared)
    stack.serve([boot(0), toEntry(spared)])
    const onlySaid = { kind: 'log-not-checked', origin: spareOrigin, detail: expect.stringContaining('never begun') }
    expect(await stack.look()).toMatchObject({ conclusion: 'complete', findings: [onlySaid] })
    const unused = { kind: 'log-unused', origin: spareOrigin }
    const change = answer(undefined, undefined)
    expect((await stack.look(change)).findings).toContainEqual(unused)
    // One address is one witness.
    expect((await stack.look({ witnessUrls: [urls[0], urls[0]] as string[] })).findings).toContainEqual(onlySaid)
    const begun = createFakeLog([boot(0)], undefined, spareOrigin)
    begun.cosignedAtS = stack.log.cosignedAtS
    stack.network.routes.unshift([`${urls[1]}/${hashOrigin(spareOrigin)}`, () => new Response(begun.toNote())])
    const report = await stack.look({ witnessUrls: urls.slice(0, 2) })
    expect(report).toMatchObject({
      conclusion: 'incomplete',
      findings: [{ kind: 'log-withholds', origin: spareOrigin, detail: expect.stringContaining('it was begun') }],
    })
  })
})
