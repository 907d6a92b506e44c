import { type AddressInfo, createServer } from 'node:net'
import type { OpenSessionResponse } from '@countersign/protocol'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { toItem } from '../../../../enclave/test/items.ts'
import { setUp, unavailable, withCode } from '../../../test/sign/enclave/enclaveClient.ts'
import {
  fakeConfig,
  fakeSession,
  fakeSettings,
  fakeSigned,
  startFakeEnclave,
} from '../../../test/sign/enclave/httpEnclave.ts'
import { holdTimeLimits } from '../../../test/timeLimits.ts'

describe('failures of an enclave', () => {
  const items = [toItem(fakeSession as OpenSessionResponse)]
  const token = { idToken: 'token', loginSecret: '11'.repeat(32) }
  async function startTwo() {
    const fakes = [await startFakeEnclave(), await startFakeEnclave()] as const
    for (const fake of fakes) onTestFinished(() => fake.close())
    return fakes
  }
  const refuse = (status: number, code: string) => () => ({ status, body: { error: { code, message: '' } } })

  test('returns enclave_unavailable if it is down, for each kind of address', async () => {
    for (const url of ['http://127.0.0.1:1', 'unix:/nonexistent/socket', 'https://127.0.0.1:1']) {
      await expect(setUp([url]).enclave.openSession(token)).rejects.toEqual(unavailable)
    }
  })

  test('returns enclave_unavailable if an https address does not use TLS', async () => {
    const [fake] = await startTwo()
    const { enclave } = setUp([fake.url.replace('http:', 'https:')])
    await expect(enclave.openSession(token)).rejects.toEqual(unavailable)
    expect(fake.paths).toEqual([])
  })

  test('one call per minute tries the first one until it answers; then it is used again', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const [first, second] = await startTwo()
    const { enclave } = setUp([first.url, second.url])
    const isSigning = (path: string) => path === '/sign'
    const tried = () => [first, second].map(({ paths }) => paths.filter(isSigning).length)
    first.handlers['/sign'] = refuse(503, 'quote_unavailable')
    const sign = async (times: number) => {
      for (let time = 0; time < times; time++) await enclave.signItems(items)
      return tried()
    }
    expect(await sign(3)).toEqual([1, 3])
    vi.advanceTimersByTime(61_000)
    expect(await sign(3)).toEqual([2, 6])
    delete first.handlers['/sign']
    vi.advanceTimersByTime(61_000)
    expect(await sign(3)).toEqual([5, 6])
  })

  test('spreads concurrent calls over all enclaves', async () => {
    const [first, second] = await startTwo()
    const { enclave } = setUp([first.url, second.url])
    await Promise.all(Array.from({ length: 8 }, () => enclave.signItems(items)))
    for (const { paths } of [first, second]) expect(paths).toContain('/sign')
    expect(enclave.countSlots()).toBe(16)
  })

  test('tries one whose log is not open again after a second', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const [first, second] = await startTwo()
    const { enclave } = setUp([first.url, second.url])
    first.handlers['/sign'] = refuse(503, 'log_unavailable')
    for (let call = 0; call < 3; call++) await enclave.signItems(items)
    expect(first.paths.filter((path) => path === '/sign')).toHaveLength(1)
    delete first.handlers['/sign']
    vi.advanceTimersByTime(1_001)
    await enclave.signItems(items)
    expect(second.paths.filter((path) => path === '/sign')).toHaveLength(3)
  })

  test('an avoided enclave is called last; other boots and an invalid token change nothing', async () => {
    const [first, second] = await startTwo()
    second.bootId = 'b1'.repeat(16)
    const { enclave } = setUp([first.url, second.url])
    await enclave.signItems(items)
    enclave.avoid('b1'.repeat(16))
    for (const { handlers } of [first, second]) handlers['/open-session'] = refuse(401, 'id_token_invalid')
    await expect(enclave.openSession(token)).rejects.toEqual(withCode('oauth_exchange_failed'))
    await enclave.signItems(items)
    expect(second.paths).not.toContain('/sign')
    enclave.avoid(first.bootId)
    await enclave.signItems(items)
    expect(second.paths).toContain('/sign')
  })

  test('a sign-in without a required client key returns session_not_bound, asks no other enclave and avoids none', async () => {
    const [first, second] = await startTwo()
    first.handlers['/open-session'] = refuse(403, 'session_not_bound')
    const { enclave, lines } = setUp([first.url, second.url])
    await expect(enclave.openSession(token)).rejects.toEqual(withCode('session_not_bound'))
    expect(second.paths).toEqual([])
    expect(lines.filter(({ msg }) => msg === 'Could not use an enclave')).toEqual([])
    await enclave.signItems(items)
    expect(first.paths).toContain('/sign')
  })

  test('calls the next one after a timeout', async () => {
    const [slow, good] = await startTwo()
    const limits = holdTimeLimits()
    slow.handlers['/sign'] = () => {
      limits.end()
      return new Promise(() => {})
    }
    const { enclave, lines } = setUp([slow.url, good.url], { timeoutMs: 300 })
    await expect(enclave.signItems(items)).resolves.toHaveProperty('config')
    expect(lines).toContainEqual(expect.objectContaining({ code: 'timed_out' }))
    expect(AbortSignal.timeout).toHaveBeenCalledWith(300)
    const alone = setUp([slow.url])
    await expect(alone.enclave.signItems(items)).rejects.toEqual(unavailable)
  })

  test.each([
    [503, 'shutting_down'],
    [503, 'quote_unavailable'],
    [500, 'internal'],
    [401, 'caller_clock_skew'],
    [403, 'caller_not_allowed'],
  ])('%d %s: calls the next one, or returns enclave_unavailable without one', async (status, code) => {
    const [bad, good] = await startTwo()
    bad.handlers['/open-session'] = refuse(status, code)
    bad.handlers['/sign'] = refuse(status, code)
    const { enclave } = setUp([bad.url, good.url])
    await expect(enclave.signItems(items)).resolves.toHaveProperty('config')
    const alone = setUp([bad.url])
    await expect(alone.enclave.openSession(token)).rejects.toEqual(unavailable)
    await expect(alone.enclave.signItems(items)).rejects.toEqual(unavailable)
  })

  test('without the provider’s keys: calls the next one; if none has them, returns provider_unavailable', async () => {
    const [bad, good] = await startTwo()
    bad.handlers['/open-session'] = refuse(503, 'issuer_unavailable')
    await expect(setUp([bad.url, good.url]).enclave.openSession(token)).resolves.toEqual(fakeSession)
    for (const urls of [[bad.url], [bad.url, 'http://127.0.0.1:1'], ['http://127.0.0.1:1', bad.url]]) {
      await expect(setUp(urls).enclave.openSession(token)).rejects.toEqual(withCode('provider_unavailable'))
    }
    good.handlers['/open-session'] = refuse(401, 'id_token_invalid')
    const judged = setUp([bad.url, good.url]).enclave.openSession(token)
    await expect(judged).rejects.toEqual(withCode('oauth_exchange_failed'))
  })

  test('without a quote for any item: calls the next one; without one, the items fail', async () => {
    const [bad, good] = await startTwo()
    const failed = { batches: [], results: [{ error: 'quote_unavailable' }] }
    bad.handlers['/sign'] = () => ({ status: 200, body: failed })
    const { enclave } = setUp([bad.url, good.url])
    expect((await enclave.signItems(items)).batches).toHaveLength(1)
    const alone = await setUp([bad.url]).enclave.signItems(items)
    expect(alone).toMatchObject(failed)
  })

  test('requests the attested terms once, from the next one if the first fails', async () => {
    const [bad, good] = await startTwo()
    bad.handlers['/attest'] = refuse(503, 'quote_unavailable')
    const { enclave } = setUp([bad.url, good.url])
    expect(await enclave.getTerms()).toMatchObject({ config: fakeConfig, settings: fakeSettings })
    expect(await enclave.getTerms()).toMatchObject({ settings: fakeSettings })
    expect(good.paths).toEqual(['/attest'])
    await expect(setUp([bad.url]).enclave.getTerms()).rejects.toEqual(unavailable)
  })

  test('the check lists each address and whether it is attested and answers; a restarted one is up again', async () => {
    const [bad, good] = await startTwo()
    bad.handlers['/attest'] = refuse(503, 'quote_unavailable')
    const { enclave, attestations } = setUp([bad.url, good.url])
    const check = async () => (await enclave.check()).map(({ isUp }) => isUp)
    expect(await enclave.check()).toEqual([
      { address: bad.url, isUp: false },
      { address: good.url, isUp: true },
    ])
    // Does not request its attestation again.
    expect([await check(), attestations()]).toEqual([[false, true], 1])
    delete bad.handlers['/attest']
    expect(await check()).toEqual([true, true])
    // It doesn't know the time and rejects every call.
    good.health = 'waiting'
    expect(await check()).toEqual([true, false])
    good.health = 'ok'
    expect(await check()).toEqual([true, true])
    await good.close()
    expect(await check()).toEqual([true, false])
  })

  test('the check reports one that hangs as down while it is being attested, without a second call', async () => {
    const [fake] = await startTwo()
    const asked = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<{ status: number; body: unknown }>()
    fake.handlers['/attest'] = () => {
      asked.resolve()
      return answer.promise
    }
    const { enclave } = setUp([fake.url], { checkMs: 1 })
    const down = [{ address: fake.url, isUp: false }]
    expect(await enclave.check()).toEqual(down)
    await asked.promise
    expect(await enclave.check()).toEqual(down)
    expect(fake.paths).toEqual(['/attest'])
    answer.resolve({ status: 503, body: { code: 'quote_unavailable' } })
  })

  test('passes on the error of one item', async () => {
    const [fake] = await startTwo()
    const body = { batches: [], results: [{ error: 'grant_invalid' }] }
    fake.handlers['/sign'] = () => ({ status: 200, body })
    expect(await setUp([fake.url]).enclave.signItems(items)).toMatchObject(body)
  })

  const session = fakeSession
  test.each<[string, unknown]>([
    ['null', null],
    ['a list', []],
    ['nothing', {}],
    ['a member too many', { ...session, extra: 1 }],
    ['a short sid', { ...session, sid: '51' }],
    ['a sid in capitals', { ...session, sid: 'AB'.repeat(32) }],
    ['a grant that is no text', { ...session, grant: 7 }],
    ['an empty grant', { ...session, grant: '' }],
    ['a grant without end', { ...session, grant: 'x'.repeat(5000) }],
    ['a key id of another length', { ...session, keyId: '1d' }],
    ['an address without 0x', { ...session, address: 'ad'.repeat(20) }],
    ['an invalid time', { ...session, expiresAt: 'soon' }],
  ])('openSession answered with %s: enclave_unavailable', async (_, body) => {
    const [fake] = await startTwo()
    fake.handlers['/open-session'] = () => ({ status: 200, body })
    const { enclave, lines } = setUp([fake.url])
    await expect(enclave.openSession(token)).rejects.toEqual(unavailable)
    expect(lines.at(-1)).toMatchObject({ code: 'answer_malformed' })
  })

  const signed = fakeSigned('b0'.repeat(16))
  const [batch] = signed.batches
  const [result] = signed.results
  test.each<[string, unknown]>([
    ['nothing', {}],
    ['no results', { ...signed, results: [] }],
    ['a result too many', { ...signed, results: [result, result] }],
    ['more batches than items', { ...signed, batches: [batch, batch] }],
    ['a result without its batch', { ...signed, batches: [] }],
    ['a missing batch', { ...signed, results: [{ ...result, batch: 1 }] }],
    ['a leaf outside the tree', { ...signed, results: [{ ...result, leafIndex: 1 }] }],
    ['a leaf before the tree', { ...signed, results: [{ ...result, leafIndex: -1 }] }],
    ['a member with an invented name', { ...signed, results: [{ ...result, path: [] }] }],
    ['no statement', { ...signed, results: [{ ...result, statement: null }] }],
    ['a statement that is a list', { ...signed, results: [{ ...result, statement: [] }] }],
    ['no subject', { ...signed, results: [{ ...result, subject: null }] }],
    ['an opening that is text', { ...signed, results: [{ ...result, opening: '' }] }],
    ['an error with an invented name', { ...signed, results: [{ error: 'because' }] }],
    ['an error and a statement', { ...signed, results: [{ ...result, error: 'grant_invalid' }] }],
    ['an empty tree', { ...signed, batches: [{ ...batch, leaves: [] }] }],
    ['a tree that no batch has', { ...signed, batches: [{ ...batch, leaves: Array(257).fill('22'.repeat(32)) }] }],
    ['leaves that are no hashes', { ...signed, batches: [{ ...batch, leaves: ['no'] }] }],
    ['a sequence that is no number', { ...signed, batches: [{ ...batch, sequence: '0' }] }],
    ['a quote without end', { ...signed, batches: [{ ...batch, quote: '00'.repeat(65_537) }] }],
    ['half a byte of quote', { ...signed, batches: [{ ...batch, quote: '000' }] }],
    ['an event log without end', { ...signed, batches: [{ ...batch, eventLog: 'x'.repeat(131_073) }] }],
    ['17 MB', { ...signed, extra: 'x'.repeat(17_000_000) }],
  ])('signItems answered with %s: enclave_unavailable', async (_, body) => {
    const [fake] = await startTwo()
    fake.handlers['/sign'] = () => ({ status: 200, body })
    const { enclave, lines } = setUp([fake.url])
    await expect(enclave.signItems(items)).rejects.toEqual(unavailable)
    expect(lines.at(-1)).toMatchObject({ code: 'answer_malformed' })
  })

  test.each<[string, unknown]>([
    ['nothing', {}],
    ['an invalid quote', { quote: '00', config: fakeConfig, tlsKeyHash: '00'.repeat(32), bootId: 'b0'.repeat(16) }],
    ['half a configuration', { quote: '00', config: {}, tlsKeyHash: '00'.repeat(32), bootId: 'b0'.repeat(16) }],
    [
      'a configuration that fits no receipt',
      {
        quote: '00',
        config: { ...fakeConfig, version: 'x'.repeat(300) },
        tlsKeyHash: '00'.repeat(32),
        bootId: 'b0'.repeat(16),
      },
    ],
  ])('attest answered with %s: enclave_unavailable', async (_, body) => {
    const [fake] = await startTwo()
    fake.handlers['/attest'] = () => ({ status: 200, body })
    await expect(setUp([fake.url]).enclave.openSession(token)).rejects.toEqual(unavailable)
    expect(fake.paths).toEqual(['/attest'])
  })

  test.each([
    ['no HTTP', 'hello\r\n\r\n'],
    ['HTTP that is not JSON', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'],
    ['half an answer', 'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"quote":'],
    ['a page of a proxy', 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>'],
    ['nothing', ''],
  ])('%s: enclave_unavailable', async (_, text) => {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end(text))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())))
    const { enclave } = setUp([`http://127.0.0.1:${(server.address() as AddressInfo).port}`])
    await expect(enclave.openSession(token)).rejects.toEqual(unavailable)
  })

  test('stop answers pending calls and rejects later ones', async () => {
    const [fake] = await startTwo()
    const { enclave } = setUp([fake.url])
    await enclave.signItems(items)
    const pending = enclave.signItems(items)
    await Promise.resolve()
    await enclave.stop()
    await expect(pending).resolves.toHaveProperty('config')
    await expect(enclave.openSession(token)).rejects.toEqual(withCode('shutting_down'))
  })
})

describe('addresses and policy', () => {
  test.each([
    'http://enclave.example:8090',
    'http://127.0.0.1.example',
    'http://10.0.0.1',
    'ftp://127.0.0.1',
    'https://user:pass@enclave.example',
    'https://enclave.example/path',
    'https://enclave.example/?a=b',
    'unix:socket',
    'enclave',
    '',
  ])('%j is refused', (url) => {
    expect(() => setUp([url])).toThrow(TypeError)
  })

  test('rejects an empty list of addresses', () => {
    expect(() => setUp([])).toThrow(TypeError)
  })

  test('hardware requires measurements and configuration hashes', () => {
    const url = 'https://enclave.example'
    for (const policy of [{}, { measurements: [{ mrTd: '00'.repeat(48) }] }, { configHashes: ['00'.repeat(32)] }]) {
      expect(() => setUp([url], { isMock: false, policy })).toThrow(TypeError)
    }
  })
})
