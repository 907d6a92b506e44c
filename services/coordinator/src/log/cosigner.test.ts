import { hash } from 'node:crypto'
import { assertCosigned, formatSignatureLines, parseNote, signNote } from '@countersign/log'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createSigner } from '../../../../packages/log/test/logs.ts'
import { createLogRig, type LogRig, ORIGINS } from '../../test/log/logService.ts'
import { type Behaviour, forge, honest, type TestWitness } from '../../test/log/witnesses.ts'

const [ORIGIN] = ORIGINS as [string]
const HASH = hash('sha256', ORIGIN, 'hex')

let rig: LogRig
let logService: ReturnType<LogRig['startLogService']>
beforeEach(async () => {
  rig = await createLogRig()
})
afterEach(() => rig.stop())

const witness = (index: number) => rig.witnesses[index] as TestWitness

async function open(parameters?: Parameters<LogRig['startLogService']>[0]) {
  logService = rig.startLogService(parameters)
  await expect
    .poll(() => {
      rig.time.pass(1_000)
      return rig.enclave.current?.isOpen
    })
    .toBe(true)
}

/** Records entries and requests a note. */
async function record(count = 1) {
  const { leaves: _, ...appended } = rig.enclave.append(count)
  await logService.record(appended, { bootId: rig.enclave.bootId, terms: rig.enclave.terms, claims: [] })
  return { origin: ORIGIN, size: appended.from + count }
}

/** Advances the time until the condition holds. */
async function whilePassing<Result>(promise: Promise<Result>): Promise<Result> {
  let isSettled = false
  const settled = promise.finally(() => {
    isSettled = true
  })
  await expect
    .poll(() => {
      rig.time.pass(250)
      return isSettled
    })
    .toBe(true)
  return settled
}

const namesOf = (note: string) =>
  parseNote(note)
    .signatures.map(({ name }) => name)
    .slice(1)

/** Cosigns another text than the requested one, with a valid signature. */
function cosignOther(name: string, change: (text: string) => string, aheadS = 0): Behaviour {
  return async (_ask, body) => {
    const text = change(parseNote(body.slice(body.indexOf('\n\n') + 2)).text)
    const timestampS = Math.floor(rig.time.clock.now() / 1000) + aheadS
    const signer = { ...createSigner(name, 'cosignature-ed25519'), timestampS }
    return { status: 200, body: formatSignatureLines(parseNote(signNote(text, [signer])).signatures) }
  }
}

const conflict = (size: number | string) => ({ status: 409, body: `${size}\n`, type: 'text/x.tlog.size' })
const toOther = (text: string) =>
  text.replace(/\n[A-Za-z0-9+/]{43}=\n/, `\n${Buffer.alloc(32, 7).toString('base64')}\n`)
let answered = 0

const liars: [string, string, Behaviour][] = [
  ['a bad signature', 'lies', forge],
  ['another root', 'lies', cosignOther('w3.example', toOther)],
  ['another size', 'lies', cosignOther('w3.example', (text) => text.replace(/\n\d+\n/, '\n99\n'))],
  ['another key', 'lies', cosignOther('w4.example', (text) => text)],
  ['a time more than 5 s ahead', 'unavailable', cosignOther('w3.example', (text) => text, 6)],
  ['no line', 'lies', async () => ({ status: 200, body: '' })],
  ['no note', 'lies', async () => ({ status: 200, body: 'thank you\n' })],
  ['an empty line before its own', 'lies', async (ask) => ({ status: 200, body: `\n${(await ask()).body}` })],
  [
    'another invalid line of its own',
    'lies',
    async (ask, body) => {
      const good = await ask()
      return { status: 200, body: `${good.body}${(await forge(async () => good, body))?.body}` }
    },
  ],
  ['too much', 'unavailable', async () => ({ status: 200, body: 'x'.repeat(100_000) })],
  ['a conflict with no size', 'lies', async () => conflict('many')],
  ['a conflict with a size too large to be one', 'lies', async () => conflict('99999999999999999999')],
  [
    'a conflict with the size that was proven from',
    'lies',
    async (_ask, body) => conflict(/^old (\d+)/.exec(body)?.[1] ?? ''),
  ],
  ['conflicts without end', 'unavailable', async () => conflict(answered++ % 2)],
  ['a larger size than there is', 'contradicts', async () => conflict(1_000_000)],
  ['another history', 'contradicts', async () => ({ status: 422, body: 'no\n' })],
  ['that it knows another key', 'forbidden', async () => ({ status: 403, body: 'no\n' })],
  ['that it does not know the log', 'unknown_log', async () => ({ status: 404, body: 'no\n' })],
  ['that it is broken', 'unavailable', async () => ({ status: 500, body: 'no\n' })],
  ['somewhere else', 'unavailable', async () => ({ status: 302, body: '' })],
]

describe('one witness of three misbehaves', () => {
  test.each(liars)('%s: counts as missing, and the others suffice', async (_, outcome, behave) => {
    await open()
    await logService.cosign(await record(3))
    await expect.poll(() => logService.findMissing()).toEqual([])
    witness(2).behave = behave
    for (let round = 0; round < 3; round++) {
      const { note } = await logService.cosign(await record())
      expect(namesOf(note).toSorted()).toEqual(['w1.example', 'w2.example'])
    }
    await expect.poll(() => logService.findMissing()).toEqual(['witness w3.example'])
    expect(logService.isOpen()).toBe(true)
    expect(logService.countWitnesses()).toMatchObject([{ named: 3, missing: 1, quorum: 2 }])
    expect(rig.observed.answers).toContain(`w3.example ${outcome}`)
    // Logged once, not once per round.
    const told = rig.log.lines.filter(({ msg }) => msg === 'A witness did not cosign')
    expect(told).toMatchObject([{ witness: 'w3.example', origin: ORIGIN, code: outcome }])

    witness(2).behave = honest
    await expect
      .poll(() => {
        rig.time.pass(5_000)
        return logService.findMissing()
      })
      .toEqual([])
    expect(rig.log.lines.map(({ msg }) => msg)).toContain('A witness cosigns again')
    expect(rig.enclave.current?.origin).toBe(ORIGIN)
  })

  test.each(liars)('%s while another witness is down: no caller gets a note', async (_, _outcome, behave) => {
    await open()
    witness(2).behave = behave
    await witness(1).kill()
    const refused = expect(logService.cosign(await record())).rejects.toMatchObject({ code: 'log_unavailable' })
    await expect.poll(() => rig.observed.rounds.at(-1)).not.toBe('cosigned')
    rig.time.pass(10_000)
    await refused
    await expect.poll(() => logService.isOpen()).toBe(false)
    expect(logService.findMissing()).toEqual(expect.arrayContaining(['witness w2.example', 'witness w3.example']))
  })
})

test('accepts witnesses that are as far ahead as the tolerance allows', async () => {
  await open()
  witness(2).behave = cosignOther('w3.example', (text) => text, 5)
  await witness(1).kill()
  const { note } = await logService.cosign(await record())
  expect(namesOf(note).toSorted()).toEqual(['w1.example', 'w3.example'])
})

describe('slow witnesses', () => {
  test('a silent witness delays no caller and is asked once', async () => {
    await open()
    witness(2).behave = async () => undefined
    const before = witness(2).requests.length
    for (let round = 0; round < 5; round++) await logService.cosign(await record())
    expect(witness(2).requests.length - before).toBe(1)
  })

  test('a late cosignature serves the callers that need it', async () => {
    await open()
    const gate = Promise.withResolvers<void>()
    witness(2).behave = async (ask) => {
      await gate.promise
      return ask()
    }
    const needs = [{ witnesses: [witness(2).key], quorum: 1 }]
    const asked = await record()
    const waiting = logService.cosign({ ...asked, needs })
    // Other callers continue meanwhile.
    const { note } = await logService.cosign(await record())
    expect(namesOf(note)).not.toContain('w3.example')
    gate.resolve()
    const late = await waiting
    expect(namesOf(late.note)).toContain('w3.example')
    const { witnesses, quorum } = rig.enclave.terms.settings.log ?? { witnesses: [], quorum: 0 }
    const { checkpoint } = assertCosigned(late.note, {
      log: createSigner(ORIGIN).key,
      policy: { witnesses, quorum },
    })
    expect(checkpoint.size).toBeGreaterThanOrEqual(asked.size)
  })

  test('a witness that does not answer in time is dropped, and the log waits for two others', async () => {
    await open({ witnessTimeoutMs: 500 })
    witness(2).behave = async () => undefined
    await whilePassing(logService.cosign(await record()))
    await expect.poll(() => rig.observed.answers).toContain('w3.example unavailable')
  })

  test('a requirement that cannot be met fails only its caller', async () => {
    await open()
    witness(2).behave = async () => ({ status: 500, body: '' })
    const needs = [{ witnesses: [witness(2).key], quorum: 1 }]
    const refused = expect(logService.cosign({ ...(await record()), needs })).rejects.toMatchObject({
      code: 'log_unavailable',
    })
    for (let round = 0; round < 3; round++) await logService.cosign(await record())
    rig.time.pass(10_000)
    await refused
    // There was a pause between the requests.
    expect(witness(2).requests.length).toBeLessThan(20)
  })
})

test('if no witness answers, asks again after a pause until two are back', async () => {
  await open()
  await Promise.all(rig.witnesses.map((one) => one.kill()))
  const before = rig.observed.rounds.length
  const waiting = logService.cosign(await record())
  await expect.poll(() => rig.observed.rounds.length).toBe(before + 1)
  await Promise.all([witness(0).revive(), witness(1).revive()])
  await expect
    .poll(() => {
      rig.time.pass(250)
      return rig.observed.rounds.at(-1)
    })
    .toBe('cosigned')
  expect(namesOf((await waiting).note).toSorted()).toEqual(['w1.example', 'w2.example'])
})

test('proves consistency from the start to a witness that lost its state', async () => {
  await open()
  await logService.cosign(await record(300))
  witness(0).store.saved.clear()
  witness(1).store.saved.clear()
  await witness(2).kill()
  await logService.cosign(await record())
  expect([witness(0).getSize(ORIGIN), witness(1).getSize(ORIGIN)]).toEqual([302, 302])
})

test('a coordinator that starts late proves consistency from the size that the witness names', async () => {
  await open()
  await logService.cosign(await record(10))
  await witness(2).kill()
  await logService.cosign(await record(300))
  await witness(2).revive()
  await logService.stop()
  logService = rig.startLogService()
  await expect.poll(() => witness(2).getSize(ORIGIN)).toBe(311)
})

test('if the lock is held too long, both coordinators ask and there is still one history', async () => {
  // The real store does the same if the lock's holder is frozen: it runs without the lock.
  const { store } = rig
  await open({ store: { ...store, exclusively: (_hash, run) => run() } })
  const other = rig.startLogService({ store: { ...store, exclusively: (_hash, run) => run() } })
  await expect.poll(() => other.isOpen()).toBe(true)
  for (let round = 0; round < 10; round++) {
    const [one, two] = [await record(), await record()]
    await whilePassing(
      Promise.all([logService.cosign(one), other.cosign(two), logService.cosign(two), other.cosign(one)]),
    )
  }
  expect(rig.enclave.current?.origin).toBe(ORIGIN)
  expect(rig.log.lines.filter(({ level }) => level === 'error')).toEqual([])
})

test('refreshes the time of the public checkpoint while the log does not grow', async () => {
  await open()
  const before = rig.store.logs.get(HASH)?.notes.length ?? 0
  for (let minute = 0; minute < 11; minute++) {
    // The next step is due.
    await expect.poll(() => rig.time.delays()).toContain(1_000)
    const [asked, rounds] = [witness(0).requests.length, rig.observed.rounds.length]
    rig.time.pass(60_000)
    await expect.poll(() => witness(0).requests.length).toBeGreaterThan(asked)
    // No round starts while another one runs.
    await expect.poll(() => rig.observed.rounds.length).toBeGreaterThan(rounds)
  }
  await expect.poll(() => rig.store.logs.get(HASH)?.notes.length).toBe(before + 1)
})

test('asks again for cosignatures that are older than a caller accepts, and shares recent ones', async () => {
  await open()
  const { note: first, size } = await logService.cosign(await record())
  const counted = () => rig.witnesses.map(({ requests }) => requests.length)
  const renew = () => logService.cosign({ origin: ORIGIN, size: 0, maxAgeMs: 30_000 })
  await expect.poll(() => namesOf(first).length).toBe(2)
  const before = counted()
  rig.time.pass(30_000)
  expect((await renew()).size).toBe(size)
  expect(counted()).toEqual(before)
  rig.time.pass(1)
  const [renewed, shared] = await whilePassing(Promise.all([renew(), renew()]))
  expect(shared).toEqual(renewed)
  expect(renewed.size).toBe(size)
  expect(parseNote(renewed.note).text).toBe(parseNote(first).text)
  expect(renewed.note).not.toBe(first)
  // A quorum suffices.
  await expect.poll(() => counted().filter((count, index) => count > (before[index] ?? 0)).length).toBeGreaterThan(1)
  // Callers without a limit still get it.
  expect(await logService.cosign({ origin: ORIGIN, size })).toEqual(renewed)
})

test('a witness that stays silent gives no recent cosignature to callers that need it', async () => {
  await open()
  await logService.cosign(await record())
  await Promise.all([witness(0).kill(), witness(1).kill()])
  rig.time.pass(30_001)
  const needs = [{ witnesses: [witness(0).key], quorum: 1 }]
  const refused = expect(logService.cosign({ origin: ORIGIN, size: 0, needs, maxAgeMs: 30_000 })).rejects.toMatchObject(
    { code: 'log_unavailable' },
  )
  rig.time.pass(10_000)
  await refused
})

test('names the boot that has a log open', async () => {
  logService = rig.startLogService()
  expect(logService.findBoot(ORIGIN)).toBeUndefined()
  await expect
    .poll(() => {
      rig.time.pass(1_000)
      return logService.findBoot(ORIGIN)
    })
    .toBe(rig.enclave.bootId)
  expect(logService.findBoot(ORIGINS[1] ?? '')).toBeUndefined()
})

test('logs a database failure, and stored checkpoints still get cosigned', async () => {
  await open()
  const asked = await record()
  rig.store.failure = new Error('gone')
  expect((await whilePassing(logService.cosign(asked))).size).toBe(asked.size)
  await expect.poll(() => rig.log.lines.map(({ msg }) => msg)).toContain('Could not store a cosigned checkpoint')
  rig.store.failure = undefined
})
