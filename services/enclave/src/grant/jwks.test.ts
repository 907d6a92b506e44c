import { generateKeyPairSync } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  createFakeClock,
  DISCOVERY_PATH,
  type FakeIssuer,
  JWKS_PATH,
  sendJson,
  startFakeIssuer,
} from '../../test/grant/issuers.ts'
import { EnclaveError } from '../errors.ts'
import { createKeySource, type Fetch, type IssuerFault } from './jwks.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

let ec: JWK
let ecPrivate: JWK
let rsa: JWK
let issuer: FakeIssuer
let other: FakeIssuer
let clock: ReturnType<typeof createFakeClock>

beforeAll(async () => {
  const pair = await generateKeyPair('ES256', { extractable: true })
  ec = await exportJWK(pair.publicKey)
  ecPrivate = await exportJWK(pair.privateKey)
  rsa = await exportJWK((await generateKeyPair('RS256')).publicKey)
})

beforeEach(async () => {
  clock = createFakeClock(Date.UTC(2026, 0, 1))
  issuer = await startFakeIssuer([{ ...ec, kid: 'one' }])
  other = await startFakeIssuer([{ ...ec, kid: 'one' }])
})

afterEach(async () => {
  await issuer.goDown()
  await other.goDown()
})

function createSource(changes: Partial<Parameters<typeof createKeySource>[0]> = {}) {
  return createKeySource({
    issuer: { issuer: issuer.issuer, jwksOrigin: issuer.issuer },
    fetch,
    clock,
    ...changes,
  }).getKey
}

async function faultOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
    return 'none'
  } catch (error) {
    return error instanceof EnclaveError ? `${error.code}: ${error.details}` : error
  }
}

/** The number of requests for the key set. */
const countLoads = () => issuer.requests.filter((path) => path === JWKS_PATH).length
const es256 = (kid: string) => ({ alg: 'ES256', kid })

describe('the usable keys of a set', () => {
  const rsa1024 = () => generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' })
  const secp256k1 = () => generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey.export({ format: 'jwk' })
  const x25519 = () => generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' })

  test.each<[string, () => object]>([
    ['no use, no operations', () => ec],
    ['use sig', () => ({ ...ec, use: 'sig' })],
    ['operation verify among others', () => ({ ...ec, key_ops: ['encrypt', 'verify'] })],
    ['published for this algorithm', () => ({ ...ec, alg: 'ES256' })],
    [
      'with a certificate, which counts for nothing',
      () => ({ ...ec, x5c: ['AAAA'], x5u: 'https://elsewhere.example' }),
    ],
  ])('taken: %s', async (_name, jwk) => {
    issuer.keys = [{ ...jwk(), kid: 'one' }]
    expect((await createSource()(es256('one'))).asymmetricKeyDetails).toMatchObject({ namedCurve: 'prime256v1' })
  })

  test.each<[string, () => object, string]>([
    ['use enc', () => ({ ...ec, use: 'enc' }), 'ES256'],
    ['operations without verify', () => ({ ...ec, key_ops: ['encrypt'] }), 'ES256'],
    ['operations not a list', () => ({ ...ec, key_ops: 'verify' }), 'ES256'],
    ['algorithm not a string', () => ({ ...ec, alg: 256 }), 'ES256'],
    ['a private key', () => ecPrivate, 'ES256'],
    ['a public key with an empty d', () => ({ ...ec, d: '' }), 'ES256'],
    ['an RSA key with a prime', () => ({ ...rsa, p: 'AQAB' }), 'RS256'],
    ['a symmetric key', () => ({ kty: 'oct', k: 'AAAA' }), 'ES256'],
    ['RSA of 1024 bits', rsa1024, 'RS256'],
    ['RSA with the exponent 1', () => ({ ...rsa, e: 'AQ' }), 'RS256'],
    ['RSA without a modulus', () => ({ kty: 'RSA', e: 'AQAB' }), 'RS256'],
    ['secp256k1', secp256k1, 'ES256'],
    ['X25519', x25519, 'EdDSA'],
    ['a point off the curve', () => ({ ...ec, y: ec.x }), 'ES256'],
    ['Ed25519 of 31 bytes', () => ({ kty: 'OKP', crv: 'Ed25519', x: Buffer.alloc(31).toString('base64url') }), 'EdDSA'],
    ['an unknown type', () => ({ kty: 'AKP', pub: 'AAAA' }), 'ES256'],
    ['no kid', () => ({ ...ec, kid: undefined }), 'ES256'],
    ['kid not a string', () => ({ ...ec, kid: 1 }), 'ES256'],
    ['not an object', () => [], 'ES256'],
  ])('passed over: %s', async (_name, jwk, alg) => {
    const bad = jwk()
    issuer.keys = [Array.isArray(bad) ? bad : { kid: 'bad', ...bad }, { ...ec, kid: 'one' }]
    const source = createSource()
    expect(await faultOf(source({ alg, kid: 'bad' }))).toBe('id_token_invalid: kid')
    expect(await faultOf(source(es256('one')))).toBe('none')
  })

  test('a kid of two usable keys selects neither', async () => {
    issuer.keys = [
      { ...ec, kid: 'one' },
      { ...rsa, kid: 'one' },
      { ...rsa, kid: 'one' },
      { ...ec, kid: 'two' },
    ]
    const source = createSource()
    expect(await faultOf(source(es256('one')))).toBe('id_token_invalid: kid')
    expect(await faultOf(source(es256('two')))).toBe('none')
  })

  test('a kid of one usable and one unusable key selects the usable one', async () => {
    issuer.keys = [
      { ...rsa, kid: 'one', use: 'enc' },
      { ...ec, kid: 'one' },
    ]
    expect(await faultOf(createSource()(es256('one')))).toBe('none')
  })

  test.each([undefined, '', 'none', 'HS256', 'RS256', 'ES384', 'EdDSA', 'constructor'])(
    'a P-256 key cannot be used for %s',
    async (alg) => {
      expect(await faultOf(createSource()({ kid: 'one', ...(alg === undefined ? {} : { alg }) }))).toBe(
        'id_token_invalid: alg',
      )
    },
  )

  test('RFC 7517 §4.4: a key published for one algorithm cannot be used for another of its type', async () => {
    issuer.keys = [{ ...rsa, kid: 'one', alg: 'RS256' }]
    const source = createSource()
    expect(await faultOf(source({ alg: 'RS256', kid: 'one' }))).toBe('none')
    expect(await faultOf(source({ alg: 'PS256', kid: 'one' }))).toBe('id_token_invalid: alg')
  })

  test.each([undefined, ''])('rejects a missing kid (%j) without a request', async (kid) => {
    expect(await faultOf(createSource()({ alg: 'ES256', ...(kid === undefined ? {} : { kid }) }))).toBe(
      'id_token_invalid: kid',
    )
    expect(issuer.requests).toEqual([])
  })
})

describe('fetching keys', () => {
  test('OpenID Connect Discovery §4: the URL drops a final slash of the issuer, the name keeps it', async () => {
    issuer.answers.set(DISCOVERY_PATH, (_request, response) =>
      sendJson(response, { issuer: `${issuer.issuer}/`, jwks_uri: issuer.issuer + JWKS_PATH }),
    )
    const pinned = { issuer: `${issuer.issuer}/`, jwksOrigin: issuer.issuer }
    expect(await faultOf(createSource({ issuer: pinned })(es256('one')))).toBe('none')
    expect(issuer.requests).toEqual([DISCOVERY_PATH, JWKS_PATH])
    expect(await faultOf(createSource()(es256('one')))).toBe('issuer_unavailable: issuer_mismatch')
  })

  test('the configuration of an issuer with a path is below the path', async () => {
    const pinned = { issuer: `${issuer.issuer}/realms/a`, jwksOrigin: issuer.issuer }
    issuer.answers.set(`/realms/a${DISCOVERY_PATH}`, (_request, response) =>
      sendJson(response, { issuer: pinned.issuer, jwks_uri: issuer.issuer + JWKS_PATH }),
    )
    expect(await faultOf(createSource({ issuer: pinned })(es256('one')))).toBe('none')
  })

  test('accepts keys on another origin if that origin is pinned', async () => {
    issuer.answers.set(DISCOVERY_PATH, (_request, response) =>
      sendJson(response, { issuer: issuer.issuer, jwks_uri: other.issuer + JWKS_PATH }),
    )
    const pinned = { issuer: issuer.issuer, jwksOrigin: other.issuer }
    expect(await faultOf(createSource({ issuer: pinned })(es256('one')))).toBe('none')
    expect(await faultOf(createSource()(es256('one')))).toBe('issuer_unavailable: jwks_origin')
    expect(other.requests).toEqual([JWKS_PATH])
  })

  test('accepts application/jwk-set+json', async () => {
    issuer.answers.set(JWKS_PATH, (_request, response) => {
      response.setHeader('content-type', 'Application/JWK-Set+JSON; charset=utf-8')
      response.end(JSON.stringify({ keys: issuer.keys }))
    })
    expect(await faultOf(createSource()(es256('one')))).toBe('none')
  })

  const json = { 'content-type': 'application/json' }
  const big = () => JSON.stringify({ keys: issuer.keys, padding: 'a'.repeat(262_144) })

  test.each<[IssuerFault, string, (response: Parameters<typeof sendJson>[0]) => void]>([
    [
      'issuer_mismatch',
      DISCOVERY_PATH,
      (r) => sendJson(r, { issuer: other.issuer, jwks_uri: issuer.issuer + JWKS_PATH }),
    ],
    ['issuer_mismatch', DISCOVERY_PATH, (r) => sendJson(r, { jwks_uri: issuer.issuer + JWKS_PATH })],
    ['jwks_origin', DISCOVERY_PATH, (r) => sendJson(r, { issuer: issuer.issuer, jwks_uri: other.issuer + JWKS_PATH })],
    [
      'jwks_origin',
      DISCOVERY_PATH,
      (r) => sendJson(r, { issuer: issuer.issuer, jwks_uri: `${issuer.issuer.replace('//', '//me@')}${JWKS_PATH}` }),
    ],
    [
      'jwks_origin',
      DISCOVERY_PATH,
      (r) => sendJson(r, { issuer: issuer.issuer, jwks_uri: 'data:application/json,{}' }),
    ],
    ['malformed', DISCOVERY_PATH, (r) => sendJson(r, { issuer: issuer.issuer, jwks_uri: JWKS_PATH })],
    ['malformed', DISCOVERY_PATH, (r) => sendJson(r, { issuer: issuer.issuer })],
    ['malformed', DISCOVERY_PATH, (r) => sendJson(r, [])],
    ['malformed', DISCOVERY_PATH, (r) => r.writeHead(200, json).end('<html>')],
    ['malformed', DISCOVERY_PATH, (r) => r.writeHead(200, json).end()],
    ['malformed', JWKS_PATH, (r) => sendJson(r, {})],
    ['malformed', JWKS_PATH, (r) => sendJson(r, { keys: {} })],
    ['malformed', JWKS_PATH, (r) => r.writeHead(200, json).end('{"keys":[],"keys":[]}')],
    ['too_many_keys', JWKS_PATH, (r) => sendJson(r, { keys: Array(33).fill({ ...ec, kid: 'one' }) })],
    ['size', JWKS_PATH, (r) => r.writeHead(200, json).end(big())],
    ['size', JWKS_PATH, (r) => r.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end(gzipSync(big()))],
    ['content_type', JWKS_PATH, (r) => r.writeHead(200, { 'content-type': 'text/html' }).end('{"keys":[]}')],
    ['content_type', JWKS_PATH, (r) => r.writeHead(200).end('{"keys":[]}')],
    ['status', JWKS_PATH, (r) => r.writeHead(500, json).end('{"keys":[]}')],
    ['status', DISCOVERY_PATH, (r) => r.writeHead(404, json).end('{}')],
    ['unreachable', JWKS_PATH, (r) => r.writeHead(302, { location: '/elsewhere' }).end()],
    ['unreachable', DISCOVERY_PATH, (r) => r.writeHead(301, { location: other.issuer + DISCOVERY_PATH }).end()],
    ['unreachable', JWKS_PATH, (r) => void r.socket?.destroy()],
  ])('issuer_unavailable: %s at %s', async (fault, path, answer) => {
    issuer.answers.set(path, (_request, response) => answer(response))
    expect(await faultOf(createSource()(es256('one')))).toBe(`issuer_unavailable: ${fault}`)
    expect(other.requests).toEqual([])
  })

  test('accepts 32 keys', async () => {
    issuer.keys = Array.from({ length: 32 }, (_, index) => ({ ...ec, kid: String(index) }))
    expect(await faultOf(createSource()(es256('31')))).toBe('none')
  })

  describe("A time limit that ends when the test says so, independent of the machine's speed.", () => {
    const endLimit = () => vi.advanceTimersByTime(500)
    beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
    afterEach(() => void vi.useRealTimers())

    test('drops an issuer that never responds', async () => {
      const closed = new Promise((resolve) => {
        issuer.answers.set(JWKS_PATH, (_request, response) => {
          response.on('close', resolve)
          endLimit()
        })
      })
      expect(await faultOf(createSource({ timeoutMs: 500 })(es256('one')))).toBe('issuer_unavailable: timeout')
      await closed
    })

    test('drops one that responds byte by byte', async () => {
      const closed = new Promise((resolve) => {
        issuer.answers.set(JWKS_PATH, (_request, response) => {
          response.on('close', resolve)
          response.writeHead(200, json).write('{"keys":')
        })
      })
      const endInBody: Fetch = async (url, init) => {
        const response = await fetch(url, init)
        if (String(url).endsWith(JWKS_PATH)) setImmediate(endLimit)
        return response
      }
      const source = createSource({ fetch: endInBody, timeoutMs: 500 })
      expect(await faultOf(source(es256('one')))).toBe('issuer_unavailable: timeout')
      await closed
    })
  })

  test('the time limit applies even if fetch ignores its signal', async () => {
    const deaf: Fetch = () => new Promise(() => {})
    expect(await faultOf(createSource({ fetch: deaf, timeoutMs: 20 })(es256('one')))).toBe(
      'issuer_unavailable: timeout',
    )
  })
})

describe('caching keys', () => {
  test('for 10 minutes without another request', async () => {
    const source = createSource()
    await source(es256('one'))
    clock.advance(10 * MINUTE - 1)
    await source(es256('one'))
    expect(countLoads()).toBe(1)
    clock.advance(1)
    await source(es256('one'))
    expect(countLoads()).toBe(2)
  })

  test('a withdrawn key is removed after 10 minutes, even if it was the last', async () => {
    const source = createSource()
    await source(es256('one'))
    issuer.keys = []
    clock.advance(10 * MINUTE)
    expect(await faultOf(source(es256('one')))).toBe('id_token_invalid: kid')
  })

  test('an unknown kid causes a new fetch, once in 30 s', async () => {
    const source = createSource()
    await source(es256('one'))
    issuer.keys = [{ ...ec, kid: 'two' }]
    clock.advance(30_000 - 1)
    expect(await faultOf(source(es256('two')))).toBe('id_token_invalid: kid')
    expect(countLoads()).toBe(1)
    clock.advance(1)
    expect(await faultOf(source(es256('two')))).toBe('none')
    expect(countLoads()).toBe(2)
    for (let kid = 0; kid < 5; kid++) expect(await faultOf(source(es256(`x${kid}`)))).toBe('id_token_invalid: kid')
    expect(countLoads()).toBe(2)
    clock.advance(30_000)
    expect(await faultOf(source(es256('x')))).toBe('id_token_invalid: kid')
    expect(countLoads()).toBe(3)
  })

  test('concurrent callers share one fetch', async () => {
    const source = createSource()
    await Promise.all(Array.from({ length: 20 }, () => source(es256('one'))))
    expect(issuer.requests).toEqual([DISCOVERY_PATH, JWKS_PATH])
    issuer.keys.push({ ...ec, kid: 'two' })
    clock.advance(30_000)
    await Promise.all(Array.from({ length: 20 }, () => source(es256('two'))))
    expect(countLoads()).toBe(2)
  })

  test('while the issuer is down, uses cached keys for 24 hours and retries every 30 s', async () => {
    let fetches = 0
    const counting: Fetch = (...parameters) => {
      fetches++
      return fetch(...parameters)
    }
    const source = createSource({ fetch: counting })
    await source(es256('one'))
    await issuer.goDown()
    fetches = 0
    clock.advance(10 * MINUTE)
    for (let call = 0; call < 5; call++) expect(await faultOf(source(es256('one')))).toBe('none')
    expect(fetches).toBe(1)
    expect(await faultOf(source(es256('two')))).toBe('id_token_invalid: kid')
    expect(fetches).toBe(1)
    clock.advance(30_000)
    expect(await faultOf(source(es256('two')))).toBe('id_token_invalid: kid')
    expect(fetches).toBe(2)
    clock.advance(24 * HOUR - 10 * MINUTE - 30_000 - 1)
    expect(await faultOf(source(es256('one')))).toBe('none')
    clock.advance(1)
    expect(await faultOf(source(es256('one')))).toBe('issuer_unavailable: unreachable')
    await issuer.comeBack()
    expect(await faultOf(source(es256('one')))).toBe('none')
  })

  test('an invalid response does not replace cached keys', async () => {
    const source = createSource()
    await source(es256('one'))
    issuer.answers.set(DISCOVERY_PATH, (_request, response) => sendJson(response, { issuer: other.issuer }))
    clock.advance(10 * MINUTE)
    expect(await faultOf(source(es256('one')))).toBe('none')
  })

  test('each call retries while the cache is empty', async () => {
    await issuer.goDown()
    const source = createSource()
    expect(await faultOf(source(es256('one')))).toBe('issuer_unavailable: unreachable')
    await issuer.comeBack()
    expect(await faultOf(source(es256('one')))).toBe('none')
  })

  test('a clock that was set back does not extend the cache', async () => {
    const source = createSource()
    await source(es256('one'))
    clock.advance(-HOUR)
    await source(es256('one'))
    expect(countLoads()).toBe(2)
  })
})
