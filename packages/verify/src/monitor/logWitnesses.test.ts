import { hashOrigin } from '@countersign/log'
import { beforeEach, describe, expect, test } from 'vitest'
import { toManifest } from '../../test/issues.ts'
import {
  answerAsWitness,
  createFakeLog,
  type FakeLog,
  type FakeWitness,
  logReceipt,
  origin,
  toEntry,
  toWitnessKey,
  withTable,
} from '../../test/monitor/log/log.ts'
import {
  all,
  boot,
  createLoggedWallet,
  first,
  history,
  issueLogged,
  kindsOf,
  manifests,
  now,
  others,
  signature,
  spared,
  spareOrigin,
} from '../../test/monitor/loggedWallet.ts'
import { apiBaseUrl, json } from '../../test/network.ts'
import { emptyManifest, type Manifest } from '../parseManifest.ts'
import { createLogsMemory } from './log/logMemory.ts'

let stack: ReturnType<typeof createLoggedWallet>
beforeEach(() => {
  stack = createLoggedWallet()
})

describe('witnesses with known addresses', () => {
  const urls = ['https://w1.test', 'https://w2.test', 'https://w3.test']
  /** Each has cosigned this log; undefined means no log. */
  function answer(...logs: readonly (FakeLog | undefined)[]) {
    for (const [place, log] of logs.entries()) speak(place, { logs: log === undefined ? [] : [log] })
    return { witnessUrls: urls.slice(0, logs.length) }
  }
  function speak(place: number, said: Partial<FakeWitness> = {}, url = urls[place] as string) {
    for (const log of said.logs ?? []) log.cosigners = []
    stack.network.routes.unshift([url, (asked) => answerAsWitness(asked, { place, logs: [], at: now, ...said })])
  }
  const same = () => createFakeLog(history.entries)
  const longer = () => createFakeLog([...withTable(history.entries), signature()])

  test('that know the same size raise nothing, and an unchanged log is not stale', async () => {
    stack.publish(...all)
    stack.log.cosignedAtS = now.getTime() / 1000 - 86_400
    expect(await stack.monitor(answer(same(), same()))).toMatchObject({ conclusion: 'complete', findings: [] })
    expect(kindsOf(await stack.monitor({ witnessUrls: urls.slice(0, 1) }))).toEqual(['log-stale'])
  })

  test('are counted by their keys, and those without a checkpoint do not make the log fresh', async () => {
    stack.publish(...all)
    stack.log.cosignedAtS = now.getTime() / 1000 - 86_400
    const [one] = answer(same(), undefined, undefined).witnessUrls
    speak(0, { logs: [same()] }, 'https://also-w1.test')
    expect(kindsOf(await stack.monitor({ witnessUrls: urls }))).toEqual(['log-stale'])
    expect(kindsOf(await stack.monitor({ witnessUrls: [one, 'https://also-w1.test'] as string[] }))).toEqual([
      'log-stale',
    ])
  })

  describe('of which a quorum has more than the service shows', () => {
    const waits: number[] = []
    const wait = async (ms: number) => waits.push(ms) > 0
    const countWaited = () => waits.splice(0).reduce((sum, ms) => sum + ms, 0)
    const ahead = 'it shows 5 entries, but its witnesses cosigned 7'
    beforeEach(() => {
      stack.publish(...all)
      countWaited()
    })

    test('show after a minute that it withholds entries; the next run does not wait again', async () => {
      const change = answer(longer(), longer(), same())
      const logs = createLogsMemory()
      const withheld = { conclusion: 'incomplete', findings: [{ kind: 'log-withholds', origin, detail: ahead }] }
      expect(await stack.monitor(change, logs, { wait })).toMatchObject(withheld)
      expect(countWaited()).toBe(60_000)
      expect(await stack.monitor(change, logs, { wait })).toMatchObject(withheld)
      expect(await stack.monitor({}, logs, { wait })).toMatchObject(withheld)
      expect(countWaited()).toBe(0)
    })

    test('raise nothing if the service shows the entries within that minute', async () => {
      const grown = () => createFakeLog([...withTable(history.entries), ...others(1)])
      const change = answer(grown(), grown(), same())
      const logs = createLogsMemory()
      const show = async (ms: number) => {
        if (waits.push(ms) === 3) stack.append(...others(1))
        return true
      }
      const shown = { conclusion: 'complete', findings: [], logs: [{ size: 7 }] }
      expect(await stack.monitor(change, logs, { wait: show })).toMatchObject(shown)
      expect(logs.unshown.size).toBe(0)
    })

    test('raise nothing in a run that cannot wait', async () => {
      const change = answer(longer(), longer(), same())
      const logs = createLogsMemory()
      expect(await stack.monitor(change, logs)).toMatchObject({
        conclusion: 'incomplete',
        findings: [{ kind: 'log-unavailable', detail: `${ahead}; this run did not wait for them` }],
      })
    })

    test('do not prevent the alarm for a log that lies', async () => {
      const report = await stack.monitor(
        answer(longer(), longer(), createFakeLog([boot(0), ...others(2)])),
        undefined,
        {
          wait,
        },
      )
      expect(report.conclusion).toBe('log-lies')
      expect(countWaited()).toBe(0)
    })
  })

  test('raise nothing if fewer than a quorum are ahead', async () => {
    stack.publish(...all)
    expect(await stack.monitor(answer(longer(), same(), same()))).toMatchObject({
      conclusion: 'complete',
      findings: [],
    })
  })

  test('leave a gap if one is ahead and too few others answer', async () => {
    stack.publish(...all)
    const report = await stack.monitor({ witnessUrls: [...answer(longer(), same()).witnessUrls, 'https://down.test'] })
    expect(report.conclusion).toBe('incomplete')
    const unchecked = report.findings.find(({ kind }) => kind === 'log-not-checked')
    expect(unchecked?.witnesses?.toSorted()).toEqual([toWitnessKey(0), toWitnessKey(2)].toSorted())
  })

  test('leave a gap if a quorum is ahead, though the reader requires only another witness', async () => {
    stack.publish(...all)
    const reader = { ...emptyManifest, log: { witnesses: [toWitnessKey(2)], quorum: 1 } }
    const change = { ...answer(longer(), longer(), same()), manifests: [...manifests, reader] }
    const report = await stack.monitor(change)
    expect(report).toMatchObject({ conclusion: 'incomplete', findings: [{ kind: 'log-not-checked', origin }] })
    expect(report.findings[0]?.witnesses?.toSorted()).toEqual([toWitnessKey(0), toWitnessKey(1)].toSorted())
  })

  describe('that only earlier settings name', () => {
    /** The newer settings name only the third witness. */
    const newer = { log: { origins: [origin], witnesses: [toWitnessKey(2)], quorum: 1 } }
    let change: { manifests: readonly Manifest[] }
    beforeEach(async () => {
      stack.serve(history.entries.slice(0, 2))
      stack.log.cosigners = [2]
      const next = logReceipt(stack.log, await issueLogged(2, { txMetadata: { nonce: 1 }, settings: newer }))
      stack.addBlocks(next)
      stack.publish(first, next)
      change = { manifests: [...manifests, toManifest(next)] }
    })
    const unchecked = { conclusion: 'incomplete', findings: [{ kind: 'log-not-checked', origin }] }
    const shown = () => createFakeLog(stack.log.entries)
    const secretly = () => createFakeLog([...history.entries.slice(0, 2), signature(), ...others(3)])

    test('find a longer history that was signed in secret', async () => {
      expect(await stack.monitor({ ...change, ...answer(secretly(), secretly(), shown()) })).toMatchObject(unchecked)
    })

    test('leave a gap if too few of them answer', async () => {
      expect(await stack.monitor(change)).toMatchObject(unchecked)
      stack.log.cosigners = [0, 1, 2]
      stack.log.delaysS = [-7200, -7200, 0]
      expect(await stack.monitor(change)).toMatchObject(unchecked)
    })

    test('raise nothing if they state that they cosigned no more, or cosigned it recently', async () => {
      const complete = { conclusion: 'complete', findings: [] }
      expect(await stack.monitor({ ...change, ...answer(shown()) })).toMatchObject(complete)
      stack.log.cosigners = [0, 2]
      expect(await stack.monitor(change)).toMatchObject(complete)
    })
  })

  test('that cosigned another history show that the log is forked', async () => {
    stack.publish(...all)
    const report = await stack.monitor(answer(createFakeLog([boot(0), ...others(2)])))
    expect(report.conclusion).toBe('log-lies')
    expect(report.findings).toMatchObject([{ detail: expect.stringContaining('w1.test cosigned another tree of 4') }])
  })

  describe('that cosigned what the key of the log did not sign', () => {
    /** Invented by a witness that has only its own key. */
    function makeUp(): FakeLog {
      const log = createFakeLog([boot(0), ...others(2)])
      const { toNote } = log
      return Object.assign(log, { toNote: () => toNote().replace(`— ${origin} `, '— another.example ') })
    }

    test('do not make the log lie, but leave a gap', async () => {
      stack.publish(...all)
      const report = await stack.monitor(answer(makeUp(), same(), same()))
      expect(report).toMatchObject({
        conclusion: 'incomplete',
        logs: [{ size: 5 }],
        findings: [{ kind: 'witness-contradicts', origin, detail: expect.stringMatching(/^w1\.test: /) }],
      })
    })

    test.each([
      ['a false one', createFakeLog([], 'other', spareOrigin).key],
      ['none', 'no key'],
    ])('contradict a service that names %s', async (_, key) => {
      stack.publish(spared)
      stack.serve([boot(0), toEntry(spared)])
      const logs = [stack.log, { name: spareOrigin, key, entries: [] }].map(({ name, key, entries }) => {
        return { origin: name, hash: hashOrigin(name), key, size: entries.length }
      })
      const begun = createFakeLog([boot(0)], undefined, spareOrigin)
      stack.network.routes.unshift([
        `${apiBaseUrl}/log`,
        (url) => (url.pathname === '/log' ? json({ logs }) : stack.log.answer(url)),
      ])
      const { conclusion, findings } = await stack.monitor(answer(begun))
      expect(conclusion).toBe('incomplete')
      expect(findings).toContainEqual(expect.objectContaining({ kind: 'witness-contradicts', origin: spareOrigin }))
    })
  })

  describe('of an origin that the settings name and the service does not show', () => {
    beforeEach(() => {
      stack.publish(spared)
      stack.serve([boot(0), toEntry(spared)])
    })
    const unchecked = (...places: readonly number[]) => {
      const witnesses = places.map((place) => toWitnessKey(place))
      return { kind: 'log-not-checked', origin: spareOrigin, witnesses: expect.toSatisfy(isSet(witnesses)) }
    }
    const isSet = (expected: readonly string[]) => (found: readonly string[]) =>
      [...found].toSorted().join() === [...expected].toSorted().join()
    const unused = { kind: 'log-unused', origin: spareOrigin }
    const withWitnesses = (...witnessUrls: string[]) => ({
      manifests: [...manifests, { ...emptyManifest, witnessUrls }],
    })

    test('leave a gap if none is asked', async () => {
      expect(await stack.monitor()).toMatchObject({ conclusion: 'incomplete', findings: [unchecked(0, 1, 2)] })
    })

    test('close the gap if n − quorum + 1 of them, from the manifest, state that they cosigned nothing', async () => {
      const { witnessUrls } = answer(undefined, undefined)
      const report = await stack.monitor(withWitnesses(...witnessUrls))
      expect(report).toMatchObject({ conclusion: 'complete', findings: [unused] })
      expect(await stack.monitor({ witnessUrls })).toMatchObject({ conclusion: 'complete', findings: [unused] })
    })

    test('leave the gap and are listed if fewer answer', async () => {
      const { witnessUrls } = answer(undefined)
      expect(await stack.monitor({ witnessUrls })).toMatchObject({
        conclusion: 'incomplete',
        findings: [unchecked(1, 2)],
      })
      // The others don't respond.
      const report = await stack.monitor(withWitnesses(...urls))
      expect(report.conclusion).toBe('incomplete')
      expect(report.findings).toContainEqual(expect.objectContaining(unchecked(1, 2)))
      expect(kindsOf(report).filter((kind) => kind === 'witness-unavailable')).toHaveLength(4)
    })

    test('count once each, even at several addresses', async () => {
      answer(undefined)
      speak(0, {}, 'https://also-w1.test')
      const report = await stack.monitor(withWitnesses(urls[0] as string, 'https://also-w1.test'))
      expect(report).toMatchObject({ conclusion: 'incomplete', findings: [unchecked(1, 2)] })
    })

    const later301 = new Date(now.getTime() + 301_000)
    test.each<[string, Partial<FakeWitness>]>([
      ['a key of no witness', { seed: 'other' }],
      ['another nonce', { change: { nonce: '00'.repeat(32) } }],
      ['another origin', { change: { originHash: hashOrigin(origin) } }],
      ['a date five minutes off', { at: later301 }],
      ['the key of another witness', { change: { witness: createFakeLog().witnesses[0] as string } }],
    ])('do not count with %s', async (_, said) => {
      answer(undefined)
      speak(1, said)
      const report = await stack.monitor(withWitnesses(...urls.slice(0, 2)))
      expect(report.conclusion).toBe('incomplete')
      expect(report.findings).toContainEqual(expect.objectContaining({ kind: 'log-not-checked', origin: spareOrigin }))
      expect(report.findings).toContainEqual(
        expect.objectContaining({ kind: 'witness-unavailable', origin: spareOrigin }),
      )
    })

    test('do not count if they answer 404', async () => {
      for (const url of urls) stack.network.routes.unshift([url, () => new Response(null, { status: 404 })])
      const report = await stack.monitor(withWitnesses(...urls))
      expect(report.conclusion).toBe('incomplete')
      expect(report.findings).toContainEqual(expect.objectContaining(unchecked(0, 1, 2)))
    })

    test('reveal signatures made under it in secret', async () => {
      const begun = createFakeLog([boot(0), signature()], undefined, spareOrigin)
      answer(undefined)
      speak(1, { logs: [begun] })
      speak(2, { logs: [begun] })
      expect(await stack.monitor(withWitnesses(...urls))).toMatchObject({
        conclusion: 'incomplete',
        findings: [
          { kind: 'log-withholds', origin: spareOrigin, detail: expect.stringContaining('cosigned 3 entries') },
        ],
      })
      // Two others that cosigned nothing don't outvote it.
      answer(undefined, undefined)
      expect(kindsOf(await stack.monitor(withWitnesses(...urls)))).toEqual(['log-withholds'])
      // Neither does the same witness at another address.
      speak(2, {}, 'https://also-w3.test')
      const change = withWitnesses(urls[0] as string, 'https://also-w3.test', urls[2] as string)
      expect(kindsOf(await stack.monitor(change))).toEqual(['log-withholds'])
    })
  })

  test('do not count if they did not sign the answer', async () => {
    stack.publish(...all)
    speak(0, { logs: [longer()], seed: 'other' })
    const report = await stack.monitor({ witnessUrls: urls.slice(0, 1) })
    expect(report).toMatchObject({ conclusion: 'complete', findings: [{ kind: 'witness-unavailable' }] })
  })
})
