import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { APP, createTestApp, signBody, toDigest, txMetadata } from '../../test/http/testApp.ts'
import { MAX_BODY_BYTES } from '../bodyLimit.ts'
import type { CoordinatorError } from '../errors.ts'
import { readJsonBody } from './readBody.ts'

const toRequest = (body: string | Uint8Array | Readable, headers: Record<string, string> = {}) =>
  Object.assign(body instanceof Readable ? body : Readable.from([Buffer.from(body)]), {
    headers: { 'content-type': 'application/json', ...headers },
    rawHeaders: [],
    socket: {},
  })

test('accepts 128 KiB, but not one byte more', async () => {
  const text = JSON.stringify('a'.repeat(MAX_BODY_BYTES - 2))
  expect(await readJsonBody(toRequest(text))).toHaveLength(MAX_BODY_BYTES - 2)
  await expect(readJsonBody(toRequest(`${text} `))).rejects.toMatchObject({ code: 'body_too_large' })
})

test('stops reading a stream without a length at the limit', async () => {
  let sent = 0
  const endless = new Readable({
    read() {
      sent += 65_536
      this.push(new Uint8Array(65_536).fill(0x20))
    },
  })
  await expect(readJsonBody(toRequest(endless))).rejects.toMatchObject({ code: 'body_too_large' })
  expect([endless.isPaused(), sent < 10 * 65_536]).toEqual([true, true])
})

test('a caller that disconnects is not a failure of the service', async () => {
  const broken = new Readable({
    read() {
      this.destroy(new Error('socket hang up'))
    },
  })
  await expect(readJsonBody(toRequest(broken))).rejects.toMatchObject({ code: 'invalid_request' })
})

test('rejects an announced length before the body arrives', async () => {
  const stream = new Readable({ read() {} })
  await expect(readJsonBody(toRequest(stream, { 'content-length': '131073' }))).rejects.toMatchObject({
    code: 'body_too_large',
  })
})

test.each(['{', 'nul', '{"a":1,}', "{'a':1}", '\u{FEFF}{}', ' ', '{}{}', 'NaN', '"\n"'])(
  '%j is invalid_json',
  async (text) => {
    const error = await readJsonBody(toRequest(text)).catch((reason: CoordinatorError) => reason)
    expect(error).toMatchObject({ code: 'invalid_json', details: undefined })
    expect(error).not.toHaveProperty('cause')
  },
)

test.each([
  '{"a":1,"a":1}',
  '{"a":1,"\\u0061":2}',
  '{"digest":"0x00","txMetadata":{"to":"0x1","nonce":"0x0","to":"0x2"}}',
  '[{"a":{"b":0,"b":0}}]',
])('rejects duplicate members: %s', async (text) => {
  await expect(readJsonBody(toRequest(text))).rejects.toMatchObject({
    code: 'invalid_json',
    details: 'duplicate member',
  })
})

test('does not sign a request with a duplicate member', async () => {
  const { browser, signings } = createTestApp()
  const user = browser()
  await user.signIn()
  const text = JSON.stringify(signBody)
  const headers = { origin: APP, 'content-type': 'application/json' }
  const send = async (body: string) => (await user.send('/sign/digest', { method: 'POST', headers, body })).status
  expect(await send(text.replace('{', `{"digest":"0x${'00'.repeat(32)}",`))).toBe(400)
  expect(signings).toHaveLength(0)
  expect(await send(text)).toBe(200)
  expect(signings).toHaveLength(1)
})

test.each([
  ['lists', '['.repeat(60_000)],
  ['closed lists', `${'['.repeat(60_000)}${']'.repeat(60_000)}`],
  ['objects', `${'{"a":'.repeat(20_000)}0${'}'.repeat(20_000)}`],
  ['members', JSON.stringify(Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [index, 0])))],
  ['items', JSON.stringify(new Array(1001).fill(0))],
])('a body of too many %s is refused without being parsed', async (_, text) => {
  await expect(readJsonBody(toRequest(text))).rejects.toMatchObject({
    code: 'invalid_request',
    details: 'the body has too many members',
  })
})

test('accepts 1000 parts, and does not count characters in strings', async () => {
  expect(await readJsonBody(toRequest(JSON.stringify(new Array(1000).fill(0))))).toHaveLength(1000)
  for (const text of ['[{,'.repeat(20_000), '\\"[,'.repeat(10_000), '\\"'.repeat(2000), '💥[,'.repeat(9000), '\\']) {
    expect(await readJsonBody(toRequest(JSON.stringify([text])))).toEqual([text])
  }
})

test('returns invalid_json for bytes that are not UTF-8', async () => {
  await expect(readJsonBody(toRequest(Uint8Array.of(0x22, 0xff, 0x22)))).rejects.toMatchObject({ code: 'invalid_json' })
})

test('returns 413 for a transaction that is too large, and signs the largest that fits', async () => {
  const { browser, signings } = createTestApp()
  const user = browser()
  await user.signIn()
  const withData = (bytes: number) => {
    const metadata = { ...txMetadata, data: `0x${'00'.repeat(bytes)}` as const }
    return { digest: toDigest(metadata), txMetadata: metadata }
  }
  const overhead = JSON.stringify(signBody).length
  const most = Math.floor((MAX_BODY_BYTES - overhead) / 2)
  expect((await user.post('/sign/digest', withData(most))).status).toBe(200)
  expect((await user.post('/sign/digest', withData(most + 1))).status).toBe(413)
  expect(signings.length).toBe(1)
})

test('returns invalid_json for a truncated body', async () => {
  const { browser } = createTestApp()
  const user = browser()
  await user.signIn()
  const headers = { origin: APP, 'content-type': 'application/json' }
  const response = await user.send('/sign/digest', { method: 'POST', headers, body: '{"digest":' })
  expect(await response.json()).toMatchObject({ status: 400, code: 'invalid_json' })
})
