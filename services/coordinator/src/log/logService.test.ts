import { hash } from 'node:crypto'
import { assertCosigned, decodeLogEntry, parseCheckpoint, parseNote } from '@countersign/log'
import type { AppendedEntries } from '@countersign/protocol'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createSigner } from '../../../../packages/log/test/logs.ts'
import { createFakeEnclaveLog, type FakeEnclaveLog } from '../../test/log/enclaveLog.ts'
import { createLogRig, type LogRig, ORIGINS } from '../../test/log/logService.ts'
import { honest } from '../../test/log/witnesses.ts'
import { createManualTime } from '../../test/manualTime.ts'
import { CoordinatorError } from '../errors.ts'

const [FIRST, SPARE, LAST] = ORIGINS as [string, string, string]
const nameOf = (origin: string) => hash('sha256', origin, 'hex')

let rig: LogRig
beforeEach(async () => {
  rig = await createLogRig()
})
afterEach(() => rig.stop())

/** Waits until the enclave's log is open. */
async function untilOpen(enclave: FakeEnclaveLog = rig.enclave, time = rig.time) {
  await expect
    .poll(() => {
      time.pass(1_000)
      return enclave.current?.isOpen
    })
    .toBe(true)
}

/** Uses the log like signing: records entries and gets them cosigned. */
async function sign(
  logService: ReturnType<LogRig['startLogService']>,
  enclave: FakeEnclaveLog = rig.enclave,
  count = 1,
) {
  const { leaves, ...appended } = enclave.append(count)
  const { bootId, terms } = enclave
  await logService.record(appended, { bootId, terms, claims: [] })
  const { origin } = appended
  const note = await logService.cosign({ origin, size: appended.from + appended.entries.length })
  return { note, leaves, appended }
}

/** The database has only what the enclave appended. The service itself may have fetched it. */
function assertOnlyThese(appended: AppendedEntries, forged: AppendedEntries) {
  const stored = rig.store.logs.get(nameOf(FIRST))
  const entries = (stored?.entries ?? []).map((entry) => Buffer.from(entry).toString('hex')).slice(1)
  expect(entries).toEqual(appended.entries.slice(0, entries.length))
  expect((stored?.checkpoints ?? []).map(({ note }) => note)).not.toContain(
    forged.checkpoint === appended.checkpoint ? undefined : forged.checkpoint,
  )
}

/** The kinds of the log's entries in the database. */
function kindsOf(origin: string) {
  return (rig.store.logs.get(nameOf(origin))?.entries ?? []).map((entry) => decodeLogEntry(entry).kind)
}

function assertOneHistory(origin: string) {
  const stored = rig.store.logs.get(nameOf(origin))
  const sizes = rig.witnesses.map((witness) => witness.getSize(origin))
  expect(Math.max(...sizes)).toBeLessThanOrEqual(stored?.entries.length ?? 0)
  const key = createSigner(origin).key
  const policy = { witnesses: rig.witnesses.map(({ key: one }) => one), quorum: 2 }
  const roots = new Map<number, string>()
  for (const { note } of [...(stored?.checkpoints ?? []), ...(stored?.notes ?? [])]) {
    const { size, root } = parseCheckpoint(parseNote(note).text)
    const hex = Buffer.from(root).toString('hex')
    expect(roots.get(size) ?? hex).toBe(hex)
    roots.set(size, hex)
  }
  for (const { note } of stored?.notes ?? []) assertCosigned(note, { log: key, policy })
}

describe('old claims', () => {
  test('are deleted in the background when a tile is complete', async () => {
    const logService = rig.startLogService()
    await untilOpen()
    const size = kindsOf(FIRST).length
    await sign(logService, rig.enclave, 255 - size)
    expect(rig.store.deletedBefore).toEqual([])
    await sign(logService, rig.enclave, 1)
    expect(rig.store.deletedBefore).toEqual([rig.time.clock.now() - 90_000])
    await sign(logService, rig.enclave, 255)
    expect(rig.store.deletedBefore).toHaveLength(1)
  })

  test('failing to delete them is logged and fails no signature', async () => {
    const logService = rig.startLogService()
    await untilOpen()
    rig.store.deleteClaims = () => Promise.reject(new CoordinatorError('database_unavailable', 'the database is away'))
    await expect(sign(logService, rig.enclave, 256)).resolves.toBeDefined()
    expect(rig.log.lines).toContainEqual(
      expect.objectContaining({ msg: 'Could not delete old claims', code: 'database_unavailable' }),
    )
  })
})

describe('a start', () => {
  test('stores the boot entry, gets it cosigned, and opens the log, in this order', async () => {
    const steps: string[] = []
    rig.enclave.before = async (call) => {
      const written = kindsOf(FIRST).length
      const cosigned = rig.witnesses.filter((witness) => witness.getSize(FIRST) === 1).length
      steps.push(`${call} ${written} written, ${cosigned >= 2 ? 'cosigned' : 'not cosigned'}`)
    }
    rig.startLogService()
    await untilOpen()
    expect(steps.slice(0, 3)).toEqual([
      'call 0 written, not cosigned',
      'start 0 written, not cosigned',
      'release 1 written, cosigned',
    ])
    expect(kindsOf(FIRST)).toEqual(['boot'])
    expect(rig.enclave.started).toEqual([{ origin: FIRST, checkpoint: null, hashes: [] }])
    assertOneHistory(FIRST)
  })

  test('of another boot continues from the newest stored checkpoint, even if it is not cosigned', async () => {
    const logService = rig.startLogService()
    await untilOpen()
    await sign(logService, rig.enclave, 5)
    const { leaves: _, ...unseen } = rig.enclave.append(2)
    await logService.record(unseen, { bootId: rig.enclave.bootId, terms: rig.enclave.terms, claims: [] })
    rig.enclave.reboot()
    await untilOpen()
    expect(rig.enclave.started.at(-1)).toMatchObject({ origin: FIRST, checkpoint: unseen.checkpoint })
    expect(kindsOf(FIRST)).toEqual(['boot', ...Array(7).fill('signature'), 'boot'])
    assertOneHistory(FIRST)
  })

  test('logs the verifier keys before any witness knows them', async () => {
    for (const { listed } of rig.witnesses) listed.clear()
    rig.startLogService()
    await expect
      .poll(() => rig.log.lines.find(({ msg }) => msg === 'Found an enclave with a log'))
      .toMatchObject({
        vkeys: rig.enclave.terms.logs?.keys.join(' '),
      })
  })

  test('ignores an enclave whose settings have no log', async () => {
    const enclave = createFakeEnclaveLog({ own: ORIGINS, witnesses: rig.witnesses.map(({ key }) => key), quorum: 2 })
    Object.assign(enclave.terms, { settings: { ...enclave.terms.settings, log: null }, logs: undefined })
    const logService = rig.startLogService({ enclaves: [enclave] })
    await expect.poll(() => logService.isOpen()).toBe(true)
    expect(logService.findMissing()).toEqual([])
    expect(enclave.current).toBeUndefined()
  })
})

describe('signing', () => {
  test('gets a note of the log and a quorum, in the order of the settings, that covers its entries', async () => {
    const logService = rig.startLogService()
    await untilOpen()
    const { note, appended } = await sign(logService, rig.enclave, 3)
    const { witnesses } = rig.enclave.terms.settings.log ?? { witnesses: [] }
    const cosigned = assertCosigned(note.note, {
      log: createSigner(FIRST).key,
      policy: { witnesses, quorum: 2 },
    })
    expect(cosigned.checkpoint.size).toBe(appended.from + 3)
    const lines = parseNote(note.note).signatures.map(({ name }) => name)
    const ordered = cosigned.cosignatures.map(({ key }) => key.name)
    expect(lines).toEqual([FIRST, ...ordered])
  })

  test('concurrent calls share rounds', async () => {
    const logService = rig.startLogService()
    await untilOpen()
    const before = rig.observed.rounds.length
    const notes = await Promise.all(Array.from({ length: 50 }, () => sign(logService)))
    expect(new Set(notes.map(({ note }) => note.size)).size).toBeLessThan(25)
    expect(rig.observed.rounds.length - before).toBeLessThan(25)
    assertOneHistory(FIRST)
  })

  test('calls out of order or repeated give one history', async () => {
    const logService = rig.startLogService()
    await untilOpen()
    const { bootId, terms } = rig.enclave
    const first = rig.enclave.append(2)
    const second = rig.enclave.append(3)
    const context = { bootId, terms, claims: [] }
    await logService.record(second, context)
    await Promise.all([logService.record(first, context), logService.record(second, context)])
    expect(kindsOf(FIRST)).toEqual(['boot', ...Array(5).fill('signature')])
    assertOneHistory(FIRST)
  })

  test('stores claims with the entries and releases them on request', async () => {
    const logService = rig.startLogService()
    await untilOpen()
    const { leaves, ...appended } = rig.enclave.append(1)
    const [leaf = ''] = leaves
    const claims = [{ walletId: 'w', digest: '0x00', leaf }] as const
    await logService.record(appended, { bootId: rig.enclave.bootId, terms: rig.enclave.terms, claims })
    expect(rig.store.claims).toEqual([leaf])
    await logService.releaseClaims(claims)
    expect(rig.store.givenUp).toEqual([leaf])
  })

  test.each([
    [
      'another signature',
      (note: string) => note.replace(/— (\S+ .{10})(.)/, (_, start, next) => `— ${start}${next === 'A' ? 'B' : 'A'}`),
    ],
    ['another size', (note: string) => note.replace(/\n(\d+)\n/, (_, size) => `\n${Number(size) + 1}\n`)],
    ['no signature', (note: string) => note.slice(0, note.indexOf('— '))],
    ['another origin', (note: string) => note.replace(FIRST, SPARE)],
  ])('a checkpoint with %s is not written', async (_, change) => {
    const logService = rig.startLogService()
    await untilOpen()
    const { leaves: _leaves, ...appended } = rig.enclave.append(1)
    const { bootId, terms } = rig.enclave
    const forged = { ...appended, checkpoint: change(appended.checkpoint) }
    await expect(logService.record(forged, { bootId, terms, claims: [] })).rejects.toMatchObject({
      code: 'log_unavailable',
    })
    assertOnlyThese(appended, forged)
  })

  test('does not store entries that the checkpoint does not cover', async () => {
    const logService = rig.startLogService()
    await untilOpen()
    const { leaves: _, ...appended } = rig.enclave.append(2)
    const { bootId, terms } = rig.enclave
    const swapped = { ...appended, entries: appended.entries.toReversed() }
    await expect(logService.record(swapped, { bootId, terms, claims: [] })).rejects.toMatchObject({
      code: 'log_unavailable',
    })
    assertOnlyThese(appended, swapped)
  })

  test('rejects an origin that the enclave has not attested', async () => {
    const logService = rig.startLogService()
    await untilOpen()
    const { leaves: _, ...appended } = rig.enclave.append(1)
    const { bootId, terms } = rig.enclave
    const other = { ...terms, logs: { own: [SPARE], keys: terms.logs?.keys ?? [] } }
    await expect(logService.record(appended, { bootId, terms: other, claims: [] })).rejects.toMatchObject({
      code: 'log_unavailable',
    })
    await expect(logService.cosign({ origin: 'unknown', size: 1 })).rejects.toMatchObject({ code: 'log_unavailable' })
  })

  test('fetches missing entries from the enclave', async () => {
    const logService = rig.startLogService()
    await untilOpen()
    rig.enclave.append(4)
    const { appended } = await sign(logService)
    expect(appended.from).toBe(5)
    expect(kindsOf(FIRST)).toHaveLength(6)
    assertOneHistory(FIRST)
  })

  test('stores, cosigns and releases entries that the enclave appends without a request', async () => {
    rig.startLogService()
    await untilOpen()
    rig.enclave.append(2, 'dropped')
    await expect
      .poll(() => {
        rig.time.pass(1_000)
        return rig.enclave.current?.entries
      })
      .toEqual([])
    expect(kindsOf(FIRST)).toEqual(['boot', 'dropped', 'dropped'])
    expect(rig.observed.entries).toEqual(['boot', 'dropped', 'dropped'])
  })
})

describe('an unusable origin', () => {
  test('uses the next origin if witnesses do not know the first', async () => {
    for (const { listed } of rig.witnesses) listed.delete(FIRST)
    const logService = rig.startLogService()
    await untilOpen()
    expect(rig.enclave.current?.origin).toBe(SPARE)
    expect(rig.log.lines.filter(({ msg }) => msg === 'Abandoned a log')).toMatchObject([
      { origin: FIRST, code: 'log_refused', reason: expect.stringContaining('does not know this log') },
    ])
    await sign(logService)
    expect(kindsOf(SPARE)).toEqual(['boot', 'signature'])
  })

  test('does not abandon the log for a failure of the boot before a restart', async () => {
    const lists = rig.witnesses.map(({ listed }) => ({ listed, keys: listed.get(FIRST) ?? [] }))
    for (const { listed } of lists) listed.delete(FIRST)
    const first = rig.enclave.bootId
    let calls = 0
    rig.enclave.before = async (call) => {
      // The first call finds the boot, the second comes when the log would be abandoned.
      if (call !== 'call' || ++calls !== 2) return
      rig.enclave.reboot()
      for (const { listed, keys } of lists) listed.set(FIRST, keys)
    }
    rig.startLogService()
    await untilOpen()
    expect(rig.enclave.bootId).not.toBe(first)
    expect(rig.enclave.current?.origin).toBe(FIRST)
    expect(rig.log.lines.map(({ msg }) => msg)).not.toContain('Abandoned a log')
  })

  test('a quorum that knows the log suffices', async () => {
    rig.witnesses[2]?.listed.clear()
    const logService = rig.startLogService()
    await untilOpen()
    expect(rig.enclave.current?.origin).toBe(FIRST)
    await expect.poll(() => logService.findMissing()).toEqual(['witness w3.example'])
    expect(logService.isOpen()).toBe(true)
  })

  test('waits for witnesses that are down and abandons no origin', async () => {
    await Promise.all(rig.witnesses.map((witness) => witness.kill()))
    const logService = rig.startLogService()
    await expect.poll(() => rig.observed.rounds.length).toBeGreaterThan(0)
    rig.time.pass(11_000)
    await expect.poll(() => rig.log.lines.map(({ msg }) => msg)).toContain('Could not run a log')
    expect(logService.isOpen()).toBe(false)
    expect(logService.findMissing()).toEqual([
      `log ${FIRST}`,
      ...(rig.enclave.terms.settings.log?.witnesses ?? []).map(
        (key) => `witness ${rig.witnesses.find((one) => one.key === key)?.site.key.name}`,
      ),
    ])
    await Promise.all(rig.witnesses.map((witness) => witness.revive()))
    await untilOpen()
    expect(rig.enclave.current?.origin).toBe(FIRST)
    await expect.poll(() => logService.isOpen()).toBe(true)
  })

  test('while the enclave is down, its witnesses are still asked and none is missing', async () => {
    const logService = rig.startLogService()
    await untilOpen()
    await expect.poll(() => logService.findMissing()).toEqual([])
    rig.enclave.before = () => Promise.reject(new CoordinatorError('enclave_unavailable', 'the enclave is away'))
    for (let passedMs = 0; passedMs < 600_000; passedMs += 10_000) {
      rig.time.pass(10_000)
      await expect.poll(() => logService.findMissing()).toEqual([])
    }
    expect(logService.isOpen()).toBe(true)
  })

  test.each([403, 404])('abandons no origin if witnesses that know it answer %i for a while', async (status) => {
    const logService = rig.startLogService()
    await untilOpen()
    await sign(logService)
    const strange = async () => ({ status, body: '<html></html>' })
    for (const witness of rig.witnesses) witness.behave = strange
    let code: unknown
    sign(logService).catch((error: CoordinatorError) => {
      code = error.code
    })
    await expect
      .poll(() => {
        rig.time.pass(1_000)
        return code
      })
      .toBe('log_unavailable')
    // Nor does an enclave that starts in the meantime.
    rig.enclave.reboot()
    await expect
      .poll(() => {
        rig.time.pass(1_000)
        return kindsOf(FIRST).at(-1)
      })
      .toBe('boot')
    for (const witness of rig.witnesses) witness.behave = honest
    await untilOpen()
    await sign(logService)
    expect(rig.enclave.current?.origin).toBe(FIRST)
    expect(rig.log.lines.map(({ msg }) => msg)).not.toContain('Abandoned a log')
  })

  test('abandons the origin if the database is older than the witnesses, and releases nothing of it', async () => {
    const first = rig.startLogService()
    await untilOpen()
    const saved = rig.store.save()
    await sign(first, rig.enclave, 20)
    await first.stop()
    rig.store.restore(saved)
    rig.enclave.reboot()
    const second = rig.startLogService()
    await untilOpen()
    expect(rig.enclave.current?.origin).toBe(SPARE)
    expect(rig.enclave.releases.filter(({ bootId }) => bootId === rig.enclave.bootId)).toHaveLength(1)
    await sign(second)
    expect(rig.witnesses.map((witness) => witness.getSize(FIRST))).toEqual([21, 21, 21])
  })

  test('also while coordinator and enclave keep running', async () => {
    const logService = rig.startLogService()
    await untilOpen()
    const saved = rig.store.save()
    const { note } = await sign(logService, rig.enclave, 20)
    rig.time.pass(1_000)
    await rig.enclave.release({ bootId: rig.enclave.bootId, ...split(note.note) })
    rig.store.restore(saved)
    await expect(sign(logService)).rejects.toMatchObject({ code: 'log_unavailable' })
    await untilOpenOn(SPARE)
    expect(rig.log.lines.find(({ msg }) => msg === 'Abandoned a log')).toMatchObject({ origin: FIRST, code: 'log_gap' })
    await sign(logService)
    expect(kindsOf(SPARE)).toEqual(['boot', 'signature'])
  })

  test('also if the enclave restarts and the coordinator keeps running', async () => {
    const logService = rig.startLogService()
    await untilOpen()
    const saved = rig.store.save()
    await sign(logService, rig.enclave, 20)
    rig.store.restore(saved)
    rig.enclave.reboot()
    await untilOpenOn(SPARE)
    await sign(logService)
    expect(rig.witnesses.map((witness) => witness.getSize(FIRST))).toEqual([21, 21, 21])
  })

  test('if a second enclave uses the same origin, the first changes to its next one, and there is one history', async () => {
    const keys = rig.witnesses.map(({ key }) => key)
    const second = createFakeEnclaveLog({ own: ORIGINS, witnesses: keys, quorum: 2, address: 'http://second.test' })
    const logService = rig.startLogService()
    await untilOpen()
    await sign(logService)
    const other = rig.startLogService({ enclaves: [second] })
    await untilOpen(second)
    await expect(sign(logService)).rejects.toMatchObject({ code: 'log_unavailable' })
    await untilOpenOn(SPARE)
    await Promise.all([sign(logService), sign(other, second)])
    expect(second.current?.origin).toBe(FIRST)
    expect(kindsOf(FIRST)).toEqual(['boot', 'signature', 'boot', 'signature'])
    expect(kindsOf(SPARE)).toEqual(['boot', 'signature'])
    assertOneHistory(FIRST)
  })

  test('logs once that no origin is left, and opens the log when witnesses accept it', async () => {
    for (const { listed } of rig.witnesses) listed.clear()
    const logService = rig.startLogService()
    await expect
      .poll(() => {
        rig.time.pass(1_000)
        return rig.enclave.current?.origin
      })
      .toBe(LAST)
    const before = rig.observed.rounds.length
    await expect
      .poll(() => {
        rig.time.pass(1_000)
        return rig.observed.rounds.length
      })
      .toBeGreaterThan(before + 3)
    expect(logService.isOpen()).toBe(false)
    const told = rig.log.lines.filter(({ level, msg }) => level === 'error' && msg === 'Could not run a log')
    expect(told.length).toBe(1)
    for (const { listed } of rig.witnesses) listed.set(LAST, [createSigner(LAST).key])
    await untilOpen()
    await sign(logService)
  })
})

/** Waits until the log of this origin is open. */
async function untilOpenOn(origin: string) {
  await expect
    .poll(() => {
      rig.time.pass(1_000)
      return rig.enclave.current?.isOpen === true && rig.enclave.current.origin
    })
    .toBe(origin)
}

describe('two coordinators', () => {
  test('start one log once, and both sign', async () => {
    const logServices = [rig.startLogService(), rig.startLogService()]
    await untilOpen()
    expect(rig.enclave.started).toHaveLength(1)
    for (let round = 0; round < 5; round++) {
      await Promise.all(logServices.flatMap((logService) => [sign(logService), sign(logService, rig.enclave, 3)]))
    }
    expect(kindsOf(FIRST)).toEqual(['boot', ...Array(40).fill('signature')])
    assertOneHistory(FIRST)
  })

  test('a later one uses the stored cosignatures and asks no witness', async () => {
    const first = rig.startLogService()
    await untilOpen()
    const { note, appended } = await sign(first)
    rig.time.pass(250)
    await expect.poll(() => rig.store.findCosigned(hash('sha256', FIRST))).toEqual(note)
    const late = rig.startLogService()
    await late.record(appended, { bootId: rig.enclave.bootId, terms: rig.enclave.terms, claims: [] }).catch(() => {})
    const asked = rig.witnesses.flatMap(({ requests }) => requests).length
    await rig.enclave.enclaveLog.getTerms()
    const found = await late.cosign({ origin: FIRST, size: note.size })
    expect(found.note).toBe(note.note)
    expect(rig.witnesses.flatMap(({ requests }) => requests).length - asked).toBeLessThanOrEqual(3)
  })
})

describe('a coordinator killed between two steps continues after a restart', () => {
  // Each run dies at the nth outside call, for every n.
  test.each(Array.from({ length: 14 }, (_, index) => index))('after %i steps', async (steps) => {
    let left = steps
    const dead = () => new CoordinatorError('log_unavailable', 'killed')
    const step = () => {
      left -= 1
      if (left < 0) throw dead()
    }
    const { store } = rig
    const wrapped = Object.fromEntries(
      Object.entries(store)
        .filter(([, member]) => typeof member === 'function')
        .map(([name, member]) => [
          name,
          async (...parameters: unknown[]) => {
            step()
            return (member as (...all: unknown[]) => unknown)(...parameters)
          },
        ]),
    ) as unknown as typeof store
    rig.enclave.before = async () => step()
    const time = createManualTime(new Date('2026-06-15T12:00:00.000Z'))
    const killed = rig.startLogService({ store: wrapped, time })
    await expect
      .poll(() => {
        time.pass(1_000)
        return left
      })
      .toBeLessThanOrEqual(0)
    // It dies: its later calls have no effect.
    left = -1
    const stopping = killed.stop()
    rig.enclave.before = async () => {}
    const next = rig.startLogService()
    await untilOpen()
    await sign(next)
    await stopping
    expect(kindsOf(FIRST)).toEqual(['boot', 'signature'])
    expect(rig.enclave.started).toHaveLength(1)
    assertOneHistory(FIRST)
  })
})

test('a stop rejects waiting callers', async () => {
  for (const witness of rig.witnesses) witness.behave = async () => undefined
  const logService = rig.startLogService()
  await expect.poll(() => rig.witnesses[0]?.requests.length).toBe(1)
  const waiting = logService.cosign({ origin: FIRST, size: 1 })
  const ended = expect(waiting).rejects.toMatchObject({ code: 'shutting_down' })
  await logService.stop()
  await ended
  for (const witness of rig.witnesses) witness.behave = honest
})

function split(note: string) {
  const [text = '', lines = ''] = note.split('\n\n')
  const [own = '', ...cosignatures] = lines.trimEnd().split('\n')
  return { checkpoint: `${text}\n\n${own}\n`, cosignatures }
}
