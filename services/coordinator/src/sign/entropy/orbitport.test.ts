import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createFakeClock } from '../../../test/ports.ts'
import { checkSample } from './checkSample.ts'
import type { Fetch } from './fetchJson.ts'
import { type CreateOrbitportSourceParameters, createOrbitportSource } from './orbitport.ts'

const FIXTURE = join(
  import.meta.dirname,
  '../../../../../../shared/fixtures/entropy/orbitport-trng-response-example.json',
)

const TOKEN_URL = 'https://auth.example/oauth/token'
const answer = {
  service: 'trng',
  src: 'aptosorbital',
  data: '0a'.repeat(32),
  signature: { value: '3046', pk: '', algo: '' },
}

type Call = { url: string; authorization: string | null; body: unknown }

function createGateway(parameters: Partial<CreateOrbitportSourceParameters> = {}) {
  const clock = createFakeClock()
  const calls: Call[] = []
  const gateway = {
    clock,
    calls,
    token: (): Response => Response.json({ access_token: `token-${calls.length}`, expires_in: 3600 }),
    trng: (): Response => Response.json(answer),
  }
  const fetch: Fetch = async (input, init) => {
    const url = String(input)
    const body = typeof init?.body === 'string' ? JSON.parse(init.body) : undefined
    calls.push({ url, authorization: new Headers(init?.headers).get('authorization'), body })
    return url === TOKEN_URL ? gateway.token() : gateway.trng()
  }
  const credentials = { tokenUrl: TOKEN_URL, clientId: 'client', clientSecret: 'hunter2' }
  const source = createOrbitportSource({ url: 'https://op.example/', ...credentials, fetch, clock, ...parameters })
  return Object.assign(gateway, { source })
}

const countTokens = (calls: readonly Call[]) => calls.filter(({ url }) => url === TOKEN_URL).length

test('exchanges client credentials for a token, and the token for a sample', async () => {
  const { source, calls, clock } = createGateway()
  expect(await source.getSamples(1)).toEqual([
    {
      source: 'orbitport/aptosorbital',
      valueHex: answer.data,
      signatureHex: '00'.repeat(64),
      publicKey: '00'.repeat(32),
      timestamp: new Date(clock.now()).toISOString(),
      sequence: 0,
    },
  ])
  expect(calls).toEqual([
    {
      url: TOKEN_URL,
      authorization: null,
      body: {
        client_id: 'client',
        client_secret: 'hunter2',
        audience: 'https://op.spacecomputer.io/api',
        grant_type: 'client_credentials',
      },
    },
    { url: 'https://op.example/api/v1/services/trng', authorization: 'Bearer token-1', body: undefined },
  ])
})

test('samples count as unsigned, because they cannot be verified', async () => {
  const { source, clock } = createGateway()
  expect([source.name, source.isSigned]).toEqual(['orbitport', false])
  const [witness] = await source.getSamples(1)
  if (!witness) throw new Error('no witness')
  const options = { publicKeys: new Set<string>(), now: clock.now(), maxAgeMs: 60_000, isSigned: source.isSigned }
  expect(checkSample(witness, { ...options, allowUnsigned: false })).toBe('unsigned')
  expect(checkSample(witness, { ...options, allowUnsigned: true })).toBeUndefined()
})

describe('the token', () => {
  test('is shared by all requests until a minute before it expires', async () => {
    const { source, calls, clock } = createGateway()
    await Promise.all([source.getSamples(4), source.getSamples(4)])
    clock.advance(3_539_999)
    await source.getSamples(1)
    expect(countTokens(calls)).toBe(1)
    clock.advance(1)
    await source.getSamples(1)
    expect(countTokens(calls)).toBe(2)
  })

  test('without a lifetime is used once', async () => {
    const gateway = createGateway()
    gateway.token = () => Response.json({ access_token: 'short' })
    await gateway.source.getSamples(1)
    await gateway.source.getSamples(1)
    expect(countTokens(gateway.calls)).toBe(2)
  })

  test('is dropped if the gateway rejects it', async () => {
    const gateway = createGateway()
    await gateway.source.getSamples(1)
    gateway.trng = () => Response.json({}, { status: 401 })
    await expect(gateway.source.getSamples(1)).rejects.toMatchObject({ code: 'unauthorized' })
    gateway.trng = () => Response.json(answer)
    expect(await gateway.source.getSamples(1)).toHaveLength(1)
    expect(countTokens(gateway.calls)).toBe(2)
  })

  test.each<[string, string, () => Response]>([
    ['unauthorized', 'refused credentials', () => Response.json({}, { status: 401 })],
    ['status', 'too many requests', () => Response.json({}, { status: 429 })],
    ['malformed', 'no token', () => Response.json({})],
    ['malformed', 'a token that would break the header', () => Response.json({ access_token: 'a\r\nb: c' })],
    ['malformed', 'a life of no length', () => Response.json({ access_token: 'a', expires_in: 0 })],
  ])('%s: %s; the credentials are not in the error', async (code, _name, token) => {
    const gateway = createGateway()
    gateway.token = token
    const error: unknown = await gateway.source.getSamples(1).catch((reason) => reason)
    expect(error).toMatchObject({ code })
    expect(JSON.stringify(error) + String((error as Error).stack)).not.toContain('hunter2')
    gateway.token = () => Response.json({ access_token: 'good', expires_in: 3600 })
    expect(await gateway.source.getSamples(1)).toHaveLength(1)
  })
})

describe('responses', () => {
  test('one sample per request, and at most four concurrent requests', async () => {
    const { source, calls } = createGateway()
    expect(await source.getSamples(3)).toHaveLength(3)
    expect(await source.getSamples(256)).toHaveLength(4)
    expect(calls).toHaveLength(1 + 3 + 4)
  })

  test('fails only if all requests fail', async () => {
    const gateway = createGateway()
    let count = 0
    gateway.trng = () => (count++ % 2 ? Response.json(answer) : Response.json({}, { status: 503 }))
    expect(await gateway.source.getSamples(4)).toHaveLength(2)
    gateway.trng = () => Response.json({}, { status: 503 })
    await expect(gateway.source.getSamples(4)).rejects.toMatchObject({ code: 'status' })
  })

  test.each<[string, unknown]>([
    ['another service', { ...answer, service: 'beacon' }],
    ['a short value', { ...answer, data: '0a'.repeat(31) }],
    ['a value in upper case', { ...answer, data: '0A'.repeat(32) }],
    ['encrypted output', { ...answer, data: 'threshold' }],
    ['no origin', { ...answer, src: '' }],
    ['an origin with a line end', { ...answer, src: 'a\n' }],
    ['a list', [answer]],
    ['nothing', null],
  ])('malformed: %s', async (_name, value) => {
    const gateway = createGateway()
    gateway.trng = () => Response.json(value)
    await expect(gateway.source.getSamples(1)).rejects.toMatchObject({ code: 'malformed' })
  })
})

if (existsSync(FIXTURE)) {
  test('parses the published example', async () => {
    const example = JSON.parse(readFileSync(FIXTURE, 'utf8'))
    const gateway = createGateway()
    gateway.trng = () => Response.json(example)
    expect(await gateway.source.getSamples(1)).toMatchObject([
      { source: 'orbitport/aptosorbital', valueHex: example.data },
    ])
  })
} else {
  console.log('orbitport was not tested on the published example: the fixtures are not there')
}
