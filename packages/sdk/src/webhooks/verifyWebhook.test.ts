import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { toWebhookKeyText, type WebhookEvent } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { type VerifyWebhookParameters, verifyWebhook } from './verifyWebhook.ts'

const NOW = Date.UTC(2026, 10, 16, 12)
const SECONDS = NOW / 1000

function createKey() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const key = toWebhookKeyText(publicKey.export({ type: 'spki', format: 'der' }).subarray(-32))
  return { key, privateKey }
}

const ours = createKey()
const other = createKey()
const event: WebhookEvent = {
  type: 'session.created',
  id: 'msg_0123456789abcdef0123456789abcdef',
  timestamp: '2026-11-16T11:59:58.000Z',
  data: { walletAddress: `0x${'ab'.repeat(20)}` },
}

/** Signs as the standard says, without the SDK's code. */
function toRequest(changes: { id?: string; seconds?: number | string; body?: string; by?: KeyObject } = {}) {
  const { id = event.id, seconds = SECONDS, body = JSON.stringify(event), by = ours.privateKey } = changes
  const signature = sign(undefined, Buffer.from(`${id}.${seconds}.${body}`), by).toString('base64')
  const headers: Record<string, string> = {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1a,${signature}`,
  }
  return { headers, body }
}

function verify(
  request: Pick<VerifyWebhookParameters, 'headers' | 'body'>,
  changes: Partial<VerifyWebhookParameters> = {},
) {
  return verifyWebhook({ keys: [ours.key], now: NOW, ...request, ...changes })
}

async function codeOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'accepted',
    (error) => error.code,
  )
}

describe('accepts a webhook', () => {
  test('when a trusted key signed id, time and body', async () => {
    expect(await verify(toRequest())).toEqual(event)
  })
  test('from headers of any spelling, `Headers`, and a body of bytes', async () => {
    const { headers, body } = toRequest()
    const upper = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]))
    expect(await verify({ headers: upper, body })).toEqual(event)
    expect(await verify({ headers: new Headers(headers), body: new TextEncoder().encode(body) })).toEqual(event)
    // From another realm or a library.
    const foreign = { get: (name: string) => headers[name] ?? null }
    expect(await verify({ headers: foreign, body })).toEqual(event)
  })
  test('when one of several signatures is of one of several keys', async () => {
    const { headers, body } = toRequest()
    const theirs = toRequest({ by: other.privateKey }).headers['webhook-signature']
    headers['webhook-signature'] = `v1,aGVsbG8= ${theirs} ${headers['webhook-signature']}`
    expect(await verify({ headers, body }, { keys: [createKey().key, ours.key] })).toEqual(event)
  })
  test.each([-300, 300])('when its time is off by %s seconds, the tolerance', async (off) => {
    expect(await verify(toRequest({ seconds: SECONDS + off }))).toEqual(event)
  })
  test('of an unknown type', async () => {
    const later = { ...event, type: 'moon.risen', data: {} }
    expect(await verify(toRequest({ body: JSON.stringify(later) }))).toEqual(later)
  })
})

describe('rejects a webhook', () => {
  test('when another key signed it', async () => {
    expect(await codeOf(verify(toRequest({ by: other.privateKey })))).toBe('webhook_forged')
  })
  test.each([
    ['the body', { body: `${JSON.stringify(event)} ` }],
    ['the body, written again', { body: JSON.stringify(event, undefined, 2) }],
  ])('with another %s', async (_name, changes) => {
    expect(await codeOf(verify({ ...toRequest(), ...changes }))).toBe('webhook_forged')
  })
  test.each([
    ['webhook-id', 'msg_ffffffffffffffffffffffffffffffff'],
    ['webhook-timestamp', String(SECONDS + 1)],
    ['webhook-signature', `v1a,${'A'.repeat(86)}==`],
    ['webhook-signature', 'v1a,'],
    ['webhook-signature', 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4='],
    ['webhook-signature', ''],
  ])('when %s is %s', async (name, value) => {
    const { headers, body } = toRequest()
    expect(await codeOf(verify({ headers: { ...headers, [name]: value }, body }))).toBe('webhook_forged')
  })
  test('signed with the shared-secret scheme and the public key as secret', async () => {
    const { headers, body } = toRequest()
    const signature = headers['webhook-signature']?.replace('v1a,', 'v1,') ?? ''
    expect(await codeOf(verify({ headers: { ...headers, 'webhook-signature': signature }, body }))).toBe(
      'webhook_forged',
    )
  })
  test.each([-301, 301, -31_536_000])('when its time is off by %s seconds', async (off) => {
    expect(await codeOf(verify(toRequest({ seconds: SECONDS + off })))).toBe('webhook_expired')
  })
  test.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])('without %s', async (name) => {
    const { headers, body } = toRequest()
    expect(await codeOf(verify({ headers: { ...headers, [name]: undefined }, body }))).toBe('webhook_malformed')
    const { [name]: _, ...rest } = headers
    expect(await codeOf(verify({ headers: new Headers(rest), body }))).toBe('webhook_malformed')
  })
  test.each(['webhook-id', 'webhook-timestamp'])('with %s twice', async (name) => {
    const { headers, body } = toRequest()
    const value = headers[name] ?? ''
    expect(await codeOf(verify({ headers: { ...headers, [name]: [value, value] }, body }))).toBe('webhook_malformed')
    const twice = new Headers(headers)
    twice.append(name, value)
    expect(await codeOf(verify({ headers: twice, body }))).toBe('webhook_malformed')
  })
  test.each(['a.b', '', ' ', 'x'.repeat(65), 'msg_é'])('with the id %j, though it is signed', async (id) => {
    expect(await codeOf(verify(toRequest({ id, body: JSON.stringify({ ...event, id }) })))).toBe('webhook_malformed')
  })
  test.each(['', '-1', '0', `0${SECONDS}`, `${SECONDS}.0`, '1e9', 'now', '9'.repeat(13)])(
    'with the time %j, though it is signed',
    async (seconds) => {
      expect(await codeOf(verify(toRequest({ seconds })))).toBe('webhook_malformed')
    },
  )
  test.each([
    '',
    'null',
    '[]',
    '{',
    '"text"',
    JSON.stringify({ ...event, id: 'msg_1' }),
    JSON.stringify({ ...event, data: 1 }),
  ])('with the body %j, though it is signed', async (body) => {
    expect(await codeOf(verify(toRequest({ body })))).toBe('webhook_malformed')
  })
  test('with a body that is not UTF-8, or too long', async () => {
    const { headers } = toRequest()
    expect(await codeOf(verify({ headers, body: new Uint8Array(65_537) }))).toBe('webhook_malformed')
    expect(await codeOf(verify({ headers, body: Uint8Array.of(0xff) }))).toBe('webhook_forged')
  })
  test.each([
    ['more signatures than the service has keys', 4, undefined],
    ['more signatures of other schemes than anybody makes', 16, 'v1,aGVsbG8='],
  ])('with %s', async (_name, length, other) => {
    const { headers, body } = toRequest()
    const good = headers['webhook-signature']
    const signature = [good, ...Array.from({ length }, () => other ?? good)].join(' ')
    expect(await codeOf(verify({ headers: { ...headers, 'webhook-signature': signature }, body }))).toBe(
      'webhook_malformed',
    )
  })
  test('that was handled before, after verifying it', async () => {
    const asked: string[] = []
    const seen = async (id: string) => asked.push(id) > 0
    expect(await codeOf(verify(toRequest({ by: other.privateKey }), { seen }))).toBe('webhook_forged')
    expect(asked).toEqual([])
    expect(await codeOf(verify(toRequest(), { seen }))).toBe('webhook_replayed')
    expect(asked).toEqual([event.id])
    expect(await verify(toRequest(), { seen: () => false })).toEqual(event)
  })
})

test.each([
  ['none', []],
  ['of another form', ['whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD']],
  ['that is too short', ['whpk_AAAA']],
  [
    'of small order, for which one signature fits many messages',
    [toWebhookKeyText(Uint8Array.of(1, ...new Uint8Array(31)))],
  ],
  ['next to a valid one', [ours.key, 'whpk_']],
])('rejects a key %s with webhook_keys_invalid', async (_name, keys) => {
  expect(await codeOf(verify(toRequest(), { keys }))).toBe('webhook_keys_invalid')
})
