import { encodeLogEntry, formatCheckpoint, signNote, toVkey } from '@countersign/log'
import {
  type AppendedEntries,
  createEnclaveSettings,
  type OpenSessionResponse,
  toEnclaveVersion,
  toHex,
} from '@countersign/protocol'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createSigner, witnesses } from '../../../../../packages/log/test/logs.ts'
import { toItem } from '../../../../enclave/test/items.ts'
import { setUp, unavailable, withCode } from '../../../test/sign/enclave/enclaveClient.ts'
import {
  type FakeEnclave,
  fakeConfig,
  fakeSession,
  fakeSigned,
  startFakeEnclave,
  startSwitchableRelay,
} from '../../../test/sign/enclave/httpEnclave.ts'
import { holdTimeLimits } from '../../../test/timeLimits.ts'

const [one, two] = ['log.example/one', 'log.example/two'] as const
const keys = witnesses.map(({ key }) => toHex(key.publicKey))
const settings = createEnclaveSettings([{ kind: 'unsigned' }], [], { origins: [one, two], witnesses: keys, quorum: 2 })
const config = { ...fakeConfig, version: toEnclaveVersion('0.1.0', settings) }
const vkeys = [one, two].map((origin) => toVkey(createSigner(origin).key))
const logs = { own: [two, one], keys: vkeys }
const BOOT = 'b0'.repeat(16)
const LEAF = '22'.repeat(32)

function createCheckpoint(size: number, origin: string = two): string {
  return signNote(formatCheckpoint({ origin, size, root: new Uint8Array(32), extensions: [] }), [createSigner(origin)])
}

const entry = toHex(encodeLogEntry({ kind: 'signature', keyId: '1d'.repeat(16), leaf: LEAF, timeMs: 1 }))
const appended: AppendedEntries = {
  origin: two,
  from: 4,
  entries: [entry, entry],
  states: [],
  checkpoint: createCheckpoint(6),
}
const toBatches = (bootId: string) => fakeSigned(bootId).batches.map(({ quote: _, ...batch }) => batch)
const signed = { batches: toBatches(BOOT), results: [{ batch: 0, leafIndex: 0 }], log: appended }
const statement = { statement: { type: 'countersign/signing/v2' }, subject: {} }
const quotes = [{ sequence: 0, quote: 'aa' }]
const released = { statements: [statement], quotes }
const items = [toItem(fakeSession as OpenSessionResponse)]
const logUnavailable = withCode('log_unavailable')
const refuse = (status: number, code: string) => () => ({ status, body: { error: { code, message: '' } } })

async function startLogged(): Promise<FakeEnclave> {
  const fake = await startFakeEnclave()
  onTestFinished(() => fake.close())
  const answer = (body: unknown) => () => ({ status: 200, body })
  Object.assign(fake, { settings, config, logs })
  Object.assign(fake.handlers, { '/sign': answer(signed), '/release': answer(released) })
  return fake
}

describe('an enclave’s attested logs', () => {
  test('are part of the terms', async () => {
    const fake = await startLogged()
    const { enclave } = setUp([fake.url])
    expect(await enclave.getTerms()).toMatchObject({ settings, logs })
    expect(await enclave.logs[0]?.getTerms()).toMatchObject({ settings, logs })
    expect(await enclave.signItems(items)).toMatchObject({ ...signed, config, settings, logs })
  })

  const other = toVkey(createSigner('log.example/three').key)
  const witnessKey = toVkey(createSigner(one, 'cosignature-ed25519').key)
  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['no own origin', { ...logs, own: [] }],
    ['an origin that is not in the settings', { ...logs, own: ['log.example/three'] }],
    ['an origin twice', { ...logs, own: [one, one] }],
    ['an origin that is no text', { ...logs, own: [7] }],
    ['a key too few', { ...logs, keys: vkeys.slice(0, 1) }],
    ['a key too many', { ...logs, keys: [...vkeys, other] }],
    ['keys in another order', { ...logs, keys: vkeys.toReversed() }],
    ['the key of another origin', { ...logs, keys: [vkeys[0], other] }],
    ['the key of a witness', { ...logs, keys: [witnessKey, vkeys[1]] }],
    ['an invalid key', { ...logs, keys: ['key', vkeys[1]] }],
    ['a key that is no text', { ...logs, keys: [7, vkeys[1]] }],
    ['a member too many', { ...logs, size: 1 }],
  ])('%s, with a log in the settings: enclave_unavailable', async (_, given) => {
    const fake = await startLogged()
    fake.logs = given as FakeEnclave['logs']
    const { enclave, lines } = setUp([fake.url])
    await expect(enclave.getTerms()).rejects.toEqual(unavailable)
    expect(lines.at(-1)).toMatchObject({ code: 'answer_malformed' })
    await expect(enclave.logs[0]?.call({})).rejects.toEqual(logUnavailable)
  })

  test('returns enclave_unavailable for logs without a log in the settings', async () => {
    const fake = await startFakeEnclave()
    onTestFinished(() => fake.close())
    fake.logs = logs
    await expect(setUp([fake.url]).enclave.getTerms()).rejects.toEqual(unavailable)
  })
})

describe('signing at a named boot', () => {
  async function startPair() {
    const [first, second] = [await startLogged(), await startLogged()]
    second.bootId = '2b'.repeat(16)
    const { enclave } = setUp([first.url, second.url])
    await Promise.all(enclave.logs.map((log) => log.getTerms()))
    return { first, second, enclave, signed: () => [first, second].map(countSigned) }
  }
  const countSigned = ({ paths }: FakeEnclave) => paths.filter((path) => path === '/sign').length

  test('calls no other enclave, even if that one fails', async () => {
    const { first, second, enclave, signed: counts } = await startPair()
    await enclave.signItems(items, undefined, BOOT)
    await enclave.signItems(items, undefined, BOOT)
    expect(counts()).toEqual([2, 0])
    first.handlers['/sign'] = refuse(503, 'log_unavailable')
    await expect(enclave.signItems(items, undefined, BOOT)).rejects.toEqual(logUnavailable)
    expect(counts()).toEqual([3, 0])
    expect(second.paths).not.toContain('/sign')
  })

  test('returns budget_unavailable for a boot that has ended, without calling an enclave', async () => {
    const { enclave, signed: counts } = await startPair()
    const unknown = enclave.signItems(items, undefined, '3c'.repeat(16))
    await expect(unknown).rejects.toEqual(withCode('budget_unavailable'))
    expect(counts()).toEqual([0, 0])
  })
})

describe('signing with a log', () => {
  const [batch] = toBatches(BOOT)
  test.each<[string, unknown]>([
    ['a statement', { ...signed, results: [{ ...statement, batch: 0, leafIndex: 0 }] }],
    ['no log', fakeSigned(BOOT)],
    ['a log that is null', { ...signed, log: null }],
    ['a log without batches', { ...signed, batches: [], results: [{ error: 'grant_invalid' }] }],
    ['a leaf outside the batch', { ...signed, results: [{ batch: 0, leafIndex: 1 }] }],
    ['a missing batch', { ...signed, results: [{ batch: 1, leafIndex: 0 }] }],
    ['another origin than the checkpoint’s', { ...signed, log: { ...appended, origin: one } }],
    ['an origin that is not its own', { ...signed, log: { ...appended, ...ofOther() } }],
    ['an entry too few', { ...signed, log: { ...appended, entries: [entry] } }],
    ['an entry too many', { ...signed, log: { ...appended, entries: [entry, entry, entry] } }],
    ['a short entry', { ...signed, log: { ...appended, entries: [entry, entry.slice(2)] } }],
    ['an entry in capitals', { ...signed, log: { ...appended, entries: [entry, entry.toUpperCase()] } }],
    ['an entry that is no text', { ...signed, log: { ...appended, entries: [entry, 7] } }],
    ['entries that are no list', { ...signed, log: { ...appended, entries: entry } }],
    ['a negative index', { ...signed, log: { ...appended, from: -1 } }],
    ['a checkpoint without a signature', { ...signed, log: { ...appended, checkpoint: 'x\n6\n' } }],
    ['a checkpoint that is no text', { ...signed, log: { ...appended, checkpoint: 7 } }],
    [
      'a note that is no checkpoint',
      { ...signed, log: { ...appended, checkpoint: signNote('x\n', [createSigner(two)]) } },
    ],
    ['a member too many', { ...signed, log: { ...appended, isOpen: true } }],
  ])('%s: enclave_unavailable', async (_, body) => {
    const fake = await startLogged()
    fake.handlers['/sign'] = () => ({ status: 200, body })
    const { enclave, lines } = setUp([fake.url])
    await expect(enclave.signItems(items)).rejects.toEqual(unavailable)
    expect(lines.at(-1)).toMatchObject({ code: 'answer_malformed' })
  })

  test('returns enclave_unavailable for batches of two boots', async () => {
    const fake = await startLogged()
    const results = [0, 1].map((number) => ({ batch: number, leafIndex: 0 }))
    let changes: object = { sequence: 1 }
    fake.handlers['/sign'] = () => ({
      status: 200,
      body: { ...signed, results, batches: [batch, { ...batch, ...changes }] },
    })
    const { enclave, lines } = setUp([fake.url])
    expect(await enclave.signItems([...items, ...items])).toMatchObject({ results })
    changes = { bootId: '00'.repeat(16) }
    await expect(enclave.signItems([...items, ...items])).rejects.toEqual(unavailable)
    expect(lines.at(-1)).toMatchObject({ code: 'answer_malformed' })
  })

  function ofOther() {
    const origin = 'log.example/three'
    return { origin, checkpoint: createCheckpoint(6, origin) }
  }

  test('returns a null log if nothing was signed', async () => {
    const fake = await startLogged()
    const body = { batches: [], results: [{ error: 'grant_invalid' }], log: null }
    fake.handlers['/sign'] = () => ({ status: 200, body })
    expect(await setUp([fake.url]).enclave.signItems(items)).toMatchObject(body)
  })

  test('returns enclave_unavailable for a log that the settings do not have', async () => {
    const fake = await startFakeEnclave()
    onTestFinished(() => fake.close())
    fake.handlers['/sign'] = () => ({ status: 200, body: signed })
    await expect(setUp([fake.url]).enclave.signItems(items)).rejects.toEqual(unavailable)
  })
})

describe('an enclave whose log is not open', () => {
  const token = { idToken: 'token', loginSecret: '11'.repeat(32) }
  const policy = { sid: '11'.repeat(32), grant: 'grant', policy: '{}' }
  const vault = {
    keyId: '1d'.repeat(16),
    address: `0x${'ad'.repeat(20)}`,
    publicKey: '04'.repeat(65),
    policy: '33'.repeat(32),
    owner: fakeSession.owner,
  }
  async function startClosed() {
    const closed = await startLogged()
    for (const path of ['/sign', '/vault', '/open-session'] as const) {
      closed.handlers[path] = refuse(503, 'log_unavailable')
    }
    return closed
  }

  test('without another one: returns log_unavailable for signing, sessions and vaults', async () => {
    const { enclave } = setUp([(await startClosed()).url])
    await expect(enclave.signItems(items)).rejects.toEqual(logUnavailable)
    await expect(enclave.openSession(token)).rejects.toEqual(logUnavailable)
    await expect(enclave.deriveVault(policy)).rejects.toEqual(logUnavailable)
  })

  test('with another one that is down: returns log_unavailable', async () => {
    const { enclave } = setUp([(await startClosed()).url, 'http://127.0.0.1:1'])
    await expect(enclave.signItems(items)).rejects.toEqual(logUnavailable)
  })

  test('calls the next one and keeps using it', async () => {
    const [closed, open] = [await startClosed(), await startLogged()]
    open.handlers['/vault'] = () => ({ status: 200, body: vault })
    const { enclave } = setUp([closed.url, open.url])
    await expect(enclave.signItems(items)).resolves.toHaveProperty('log')
    await expect(enclave.openSession(token)).resolves.toEqual(fakeSession)
    await expect(enclave.deriveVault(policy)).resolves.toEqual(vault)
    expect(closed.paths).toEqual(['/attest', '/sign'])
  })
})

describe('release', () => {
  const request = { bootId: BOOT, leaves: [LEAF] }

  test('goes to the enclave with the named boot', async () => {
    const [first, second] = [await startLogged(), await startLogged()]
    second.bootId = 'b1'.repeat(16)
    second.handlers['/sign'] = () => ({ status: 200, body: { ...signed, batches: toBatches(second.bootId) } })
    const { enclave } = setUp([first.url, second.url])
    await enclave.signItems(items)
    first.handlers['/sign'] = refuse(503, 'log_unavailable')
    await enclave.signItems(items)
    expect(await enclave.release({ ...request, checkpoint: 'c', cosignatures: ['d'] })).toEqual(released)
    expect(first.requests.at(-1)).toEqual({ ...request, checkpoint: 'c', cosignatures: ['d'] })
    expect(await enclave.release({ ...request, bootId: second.bootId })).toEqual(released)
    expect([first, second].map(({ paths }) => paths.filter((path) => path === '/release').length)).toEqual([1, 1])
  })

  test('returns log_unavailable for an unknown boot without calling an enclave', async () => {
    const fake = await startLogged()
    const { enclave } = setUp([fake.url])
    await enclave.signItems(items)
    await expect(enclave.release({ bootId: '00'.repeat(16), drop: [LEAF] })).rejects.toEqual(logUnavailable)
    expect(fake.paths).toEqual(['/attest', '/sign'])
  })

  test('is repeated if the connection is cut', async () => {
    const fake = await startLogged()
    const relay = await startSwitchableRelay(() => fake.url)
    onTestFinished(() => relay.close())
    const { enclave } = setUp([`http://127.0.0.1:${relay.port}`])
    await enclave.signItems(items)
    let cuts = 0
    fake.handlers['/release'] = () => {
      if (cuts++ < 3) relay.cut()
      return { status: 200, body: released }
    }
    expect(await enclave.release(request)).toEqual(released)
    expect(cuts).toBe(4)
  })

  test('is repeated once after a timeout', async () => {
    const fake = await startLogged()
    const { enclave, lines } = setUp([fake.url])
    const limits = holdTimeLimits()
    await enclave.signItems(items)
    let calls = 0
    fake.handlers['/release'] = async () => {
      calls += 1
      if (calls > 1) return { status: 200, body: released }
      limits.end()
      return new Promise(() => {})
    }
    expect(await enclave.release(request)).toEqual(released)
    expect(lines).toContainEqual(expect.objectContaining({ path: '/release', code: 'timed_out' }))
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    fake.handlers['/release'] = () => {
      vi.advanceTimersByTime(5_000)
      limits.end()
      return new Promise(() => {})
    }
    await expect(enclave.release(request)).rejects.toEqual(logUnavailable)
  })

  test('returns log_unavailable if the enclave has restarted', async () => {
    const fake = await startLogged()
    const relay = await startSwitchableRelay(() => fake.url)
    onTestFinished(() => relay.close())
    const { enclave } = setUp([`http://127.0.0.1:${relay.port}`])
    await enclave.signItems(items)
    fake.handlers['/release'] = () => {
      fake.bootId = 'b1'.repeat(16)
      relay.cut()
      return refuse(409, 'boot_unknown')()
    }
    await expect(enclave.release(request)).rejects.toEqual(logUnavailable)
    const before = fake.paths.length
    await expect(enclave.release(request)).rejects.toEqual(logUnavailable)
    expect(fake.paths.slice(before)).toEqual([])
  })

  test.each(['boot_unknown', 'log_refused', 'log_unavailable'])(
    'is not repeated if it was rejected with %s',
    async (code) => {
      const fake = await startLogged()
      const { enclave } = setUp([fake.url])
      await enclave.signItems(items)
      fake.handlers['/release'] = refuse(409, code)
      await expect(enclave.release(request)).rejects.toMatchObject({ code: 'log_unavailable', details: code })
      expect(fake.paths.filter((path) => path === '/release')).toHaveLength(1)
    },
  )

  test('may return fewer statements', async () => {
    const fake = await startLogged()
    const { enclave } = setUp([fake.url])
    await enclave.signItems(items)
    fake.handlers['/release'] = () => ({ status: 200, body: { statements: [null], quotes: [] } })
    expect(await enclave.release(request)).toEqual({ statements: [null], quotes: [] })
  })

  test.each<[string, unknown]>([
    ['nothing', {}],
    ['a statement too few', { statements: [], quotes }],
    ['a statement too many', { statements: [statement, statement], quotes }],
    ['statements that are no list', { statements: statement, quotes }],
    ['a statement that is no object', { statements: ['x'], quotes }],
    ['a statement without one', { statements: [{ subject: {} }], quotes }],
    ['no quotes', { statements: [statement] }],
    ['a malformed quote', { statements: [statement], quotes: [{ sequence: 0, quote: 'x' }] }],
    ['an invented member', { statements: [{ ...statement, batch: 0 }], quotes }],
  ])('answered with %s: log_unavailable', async (_, body) => {
    const fake = await startLogged()
    const { enclave, lines } = setUp([fake.url])
    await enclave.signItems(items)
    fake.handlers['/release'] = () => ({ status: 200, body })
    await expect(enclave.release(request)).rejects.toEqual(logUnavailable)
    expect(lines.at(-1)).toMatchObject({ code: 'answer_malformed' })
    expect(fake.paths.filter((path) => path === '/release')).toHaveLength(1)
  })

  test('returns log_unavailable for a response above the size limit, without repeating the call', async () => {
    const fake = await startLogged()
    const { enclave, lines } = setUp([fake.url])
    // Reading that many bytes can take long on a busy machine.
    holdTimeLimits()
    await enclave.signItems(items)
    const body = { statements: [{ ...statement, subject: { data: '0'.repeat(2 ** 24) } }] }
    fake.handlers['/release'] = () => ({ status: 200, body })
    await expect(enclave.release(request)).rejects.toEqual(logUnavailable)
    expect(lines.at(-1)).toMatchObject({ code: 'answer_malformed', reason: 'UND_ERR_RES_EXCEEDED_MAX_SIZE' })
    expect(fake.paths.filter((path) => path === '/release')).toHaveLength(1)
  })
})

describe('the log of one address', () => {
  const open = { bootId: BOOT, log: { ...appended, isOpen: true } }

  test('is requested only there', async () => {
    const [first, second] = [await startLogged(), await startLogged()]
    for (const fake of [first, second]) fake.handlers['/log'] = () => ({ status: 200, body: open })
    const { enclave } = setUp([first.url, second.url])
    expect(enclave.logs.map(({ address }) => address)).toEqual([first.url, second.url])
    expect(await enclave.logs[1]?.call({ from: 4 })).toEqual(open)
    expect([first.paths, second.paths]).toEqual([[], ['/attest', '/log']])
    expect(second.requests.at(-1)).toEqual({ from: 4 })
  })

  test('is null before it is started', async () => {
    const fake = await startLogged()
    fake.handlers['/log'] = () => ({ status: 200, body: { bootId: BOOT, log: null } })
    expect(await setUp([fake.url]).enclave.logs[0]?.call({})).toEqual({ bootId: BOOT, log: null })
  })

  test('attests again before it uses a response of another boot', async () => {
    const fake = await startLogged()
    const { enclave, attestations } = setUp([fake.url])
    await enclave.getTerms()
    fake.bootId = 'b1'.repeat(16)
    fake.handlers['/log'] = () => ({ status: 200, body: { ...open, bootId: fake.bootId } })
    expect(await enclave.logs[0]?.call({})).toMatchObject({ bootId: fake.bootId })
    expect(attestations()).toBe(2)
  })

  test('the details name the enclave’s rejection', async () => {
    const fake = await startLogged()
    fake.handlers['/log'] = refuse(409, 'log_refused')
    await expect(setUp([fake.url]).enclave.logs[0]?.call({})).rejects.toMatchObject({
      code: 'log_unavailable',
      details: 'log_refused',
    })
  })

  test.each<[string, unknown]>([
    ['nothing', {}],
    ['no boot', { log: null }],
    ['a log that is not said to be open or not', { bootId: BOOT, log: appended }],
    ['an isOpen that is no boolean', { bootId: BOOT, log: { ...appended, isOpen: 1 } }],
    ['an entry too many', { bootId: BOOT, log: { ...open.log, entries: [entry, entry, entry] } }],
    ['a member too many', { ...open, extra: 1 }],
  ])('answered with %s: log_unavailable', async (_, body) => {
    const fake = await startLogged()
    fake.handlers['/log'] = () => ({ status: 200, body })
    await expect(setUp([fake.url]).enclave.logs[0]?.call({})).rejects.toEqual(logUnavailable)
  })

  test('returns log_unavailable if it is down', async () => {
    const { enclave } = setUp(['http://127.0.0.1:1'])
    await expect(enclave.logs[0]?.call({})).rejects.toEqual(logUnavailable)
    await expect(enclave.logs[0]?.getTerms()).rejects.toEqual(logUnavailable)
  })
})
