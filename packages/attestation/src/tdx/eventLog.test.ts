import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createVerifier } from '../createVerifier.ts'
import { assertQuotePolicy } from '../policy.ts'
import { createSimulator } from '../simulator/index.ts'

const at = new Date('2026-06-15T00:00:00Z')
const simulator = createSimulator({ at })
const verifier = createVerifier({ roots: [simulator.intelRoot] })
const RUNTIME_EVENT = 0x08000001

type Entry = { imr: number; event_type: number; digest: string; event: string; event_payload: string }

const sha384 = (...parts: (Buffer | Uint8Array)[]) => createHash('sha384').update(Buffer.concat(parts)).digest()

function runtimeEvent(event: string, payload: string, imr = 3): Entry {
  const type = Buffer.alloc(4)
  type.writeUInt32LE(RUNTIME_EVENT)
  const digest = sha384(type, Buffer.from(':'), Buffer.from(event), Buffer.from(':'), Buffer.from(payload, 'hex'))
  return { imr, event_type: RUNTIME_EVENT, digest: digest.toString('hex'), event, event_payload: payload }
}

const bootEvent: Entry = { imr: 0, event_type: 3, digest: 'ab'.repeat(48), event: '', event_payload: '00' }
const log = [bootEvent, runtimeEvent('compose-hash', 'c0ffee'), runtimeEvent('key-provider', 'aa')]

/** An independent replay: RTMR = SHA-384(RTMR ‖ digest). */
function replay(entries: Entry[]) {
  return [0, 1, 2, 3].map((register) =>
    entries
      .filter(({ imr }) => imr === register)
      .reduce((value: Uint8Array, { digest }) => sha384(value, Buffer.from(digest, 'hex')), new Uint8Array(48)),
  ) as [Uint8Array, Uint8Array, Uint8Array, Uint8Array]
}

function verify(entries: unknown, measured = log) {
  const quote = simulator.quote({ reportData: new Uint8Array(64), rtmrs: replay(measured) })
  const eventLog = typeof entries === 'string' ? entries : JSON.stringify(entries)
  return verifier.verifyQuote({ quote, collateral: simulator.collateral(), eventLog, at })
}

describe('the replay of an event log', () => {
  test('returns the events of a log that matches the registers', async () => {
    const { events } = await verify(log)
    expect(events).toEqual(
      new Map([
        ['compose-hash', ['c0ffee']],
        ['key-provider', ['aa']],
      ]),
    )
  })

  test('accepts run-time events without digests, as in dstack’s logs', async () => {
    const stripped = log.map((entry) => (entry.event_type === RUNTIME_EVENT ? { ...entry, digest: '' } : entry))
    expect((await verify(stripped)).events?.get('compose-hash')).toEqual(['c0ffee'])
  })

  test.each([
    [
      'another payload with the old digest',
      [bootEvent, { ...runtimeEvent('compose-hash', 'c0ffee'), event_payload: 'bad0' }, log[2]],
      'event_log_malformed',
    ],
    ['another payload', [bootEvent, runtimeEvent('compose-hash', 'bad0'), log[2]], 'event_log_mismatch'],
    ['another order', [bootEvent, log[2], log[1]], 'event_log_mismatch'],
    ['an event left out', [bootEvent, log[1]], 'event_log_mismatch'],
    ['an event added', [...log, runtimeEvent('more', '')], 'event_log_mismatch'],
    ['no events', [], 'event_log_mismatch'],
    ['another boot event', [{ ...bootEvent, digest: '00'.repeat(48) }, log[1], log[2]], 'event_log_mismatch'],
    ['a short digest', [{ ...bootEvent, digest: 'ab' }, log[1], log[2]], 'event_log_malformed'],
    ['register 4', [{ ...bootEvent, imr: 4 }], 'event_log_malformed'],
    ['a missing member', [{ imr: 3 }], 'event_log_malformed'],
    ['null', [null], 'event_log_malformed'],
    ['upper-case hex', [{ ...bootEvent, digest: 'AB'.repeat(48) }], 'event_log_malformed'],
    ['a lone surrogate in a name', [runtimeEvent('\ud800', '')], 'event_log_malformed'],
    ['a member twice', JSON.stringify(log).replace('"imr":0', '"imr":3,"imr":0'), 'event_log_malformed'],
    ['no list', {}, 'event_log_malformed'],
    ['no JSON', '[', 'event_log_malformed'],
  ])('rejects %s', async (_, entries, code) => {
    await expect(verify(entries)).rejects.toMatchObject({ name: 'QuoteError', code })
  })

  test('rejects a run-time event given by its digest, even if the registers match', async () => {
    const real = [runtimeEvent('compose-hash', 'bad0'), runtimeEvent('compose-hash', 'c0ffee')]
    const hidden = [{ imr: 3, event_type: 1, digest: real[0]?.digest ?? '', event: '', event_payload: '' }, real[1]]
    await expect(verify(hidden, real)).rejects.toMatchObject({ code: 'event_log_malformed' })
  })

  test('rejects an event with a colon moved between name and payload', async () => {
    const real = [runtimeEvent('compose-hash', '3abad0'), runtimeEvent('compose-hash', 'c0ffee')]
    const renamed = { ...real[0], event: 'compose-hash:', event_payload: 'bad0', digest: '' }
    await expect(verify([renamed, real[1]], real)).rejects.toMatchObject({ code: 'event_log_malformed' })
  })

  test('requires every payload of compose-hash in the policy', async () => {
    const events = { 'compose-hash': ['c0ffee'] }
    assertQuotePolicy(await verify(log), { events })
    const verified = await verify(log)
    expect(() => assertQuotePolicy(verified, { events: { 'compose-hash': ['bad0'] } })).toThrow(
      expect.objectContaining({ code: 'event_not_allowed' }),
    )
    expect(() => assertQuotePolicy(verified, { events: { 'os-image-hash': ['aa'] } })).toThrow(
      expect.objectContaining({ code: 'event_not_allowed' }),
    )
    const twice = [...log, runtimeEvent('compose-hash', 'bad0')]
    const second = await verify(twice, twice)
    expect(() => assertQuotePolicy(second, { events })).toThrow(expect.objectContaining({ code: 'event_not_allowed' }))
  })

  test('fails a policy with events if there is no log', async () => {
    const quote = simulator.quote({ reportData: new Uint8Array(64) })
    const verified = await verifier.verifyQuote({ quote, collateral: simulator.collateral(), at })
    expect(() => assertQuotePolicy(verified, { events: { 'compose-hash': ['c0ffee'] } })).toThrow(
      expect.objectContaining({ code: 'event_not_allowed' }),
    )
  })
})
