import {
  constants,
  createHash,
  createHmac,
  generateKeyPairSync,
  KeyObject,
  type SignKeyObjectInput,
  sign,
} from 'node:crypto'
import { CompactEncrypt, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  createFakeClock,
  DISCOVERY_PATH,
  type FakeIssuer,
  JWKS_PATH,
  sendJson,
  startFakeIssuer,
} from '../../test/grant/issuers.ts'
import { createKnownTime } from '../../test/time/time.ts'
import { EnclaveError } from '../errors.ts'
import { createTime } from '../time/time.ts'
import { createIdTokenVerifier } from './idToken.ts'
import type { IdTokenFault } from './idTokenError.ts'

const NOW_S = Date.UTC(2026, 0, 1) / 1000
const BOOTED_AT = (NOW_S - 3600) * 1000
const AUDIENCE = 'client-1'
const SECRET = new Uint8Array(32).fill(7)
const OTHER_SECRET = new Uint8Array(32).fill(8)

type Pair = { privateKey: KeyObject; publicKey: KeyObject }
type Members = Record<string, unknown>

const pairs: Record<'rsa' | 'rsaOther' | 'rsa1024' | 'P-256' | 'P-384' | 'P-521' | 'Ed25519', Pair> =
  Object.create(null)
let issuer: FakeIssuer
let second: FakeIssuer
let clock: ReturnType<typeof createFakeClock>

beforeAll(async () => {
  const make = async (alg: string): Promise<Pair> => {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
    return { privateKey: KeyObject.from(privateKey), publicKey: KeyObject.from(publicKey) }
  }
  pairs.rsa = await make('RS256')
  pairs.rsaOther = await make('RS256')
  // jose creates none this short.
  pairs.rsa1024 = generateKeyPairSync('rsa', { modulusLength: 1024 })
  pairs['P-256'] = await make('ES256')
  pairs['P-384'] = await make('ES384')
  pairs['P-521'] = await make('ES512')
  pairs.Ed25519 = await make('Ed25519')
})

let keys: object[]
let secondKeys: object[]

beforeAll(async () => {
  keys = [
    await toJwk('rsa', 'rsa'),
    await toJwk('P-256', 'p256'),
    await toJwk('P-384', 'p384'),
    await toJwk('P-521', 'p521'),
    await toJwk('Ed25519', 'ed25519'),
    { ...(await toJwk('rsaOther', 'enc')), use: 'enc' },
    await toJwk('rsa1024', 'rsa1024'),
    { kty: 'oct', kid: 'oct', alg: 'HS256', k: Buffer.from(SECRET).toString('base64url') },
    { kty: 'oct', kid: 'oct-as-rsa', alg: 'RS256', k: Buffer.from(SECRET).toString('base64url') },
  ]
  secondKeys = [await toJwk('rsaOther', 'second')]
  issuer = await startFakeIssuer()
  second = await startFakeIssuer()
})

beforeEach(async () => {
  clock = createFakeClock(NOW_S * 1000)
  await issuer.reset(keys)
  await second.reset(secondKeys)
})

afterAll(async () => {
  await issuer.goDown()
  await second.goDown()
})

async function toJwk(name: keyof typeof pairs, kid: string): Promise<object> {
  return { ...(await exportJWK(pairs[name].publicKey)), kid }
}

type Changes = Partial<Parameters<typeof createIdTokenVerifier>[0]> & { bootedAt?: number }

function createVerifier({ bootedAt = BOOTED_AT, ...changes }: Changes = {}) {
  const issuers = [
    { issuer: issuer.issuer, audience: AUDIENCE, jwksOrigin: issuer.issuer },
    { issuer: second.issuer, audience: 'client-2', jwksOrigin: second.issuer },
  ]
  return createIdTokenVerifier({ issuers, fetch, time: createKnownTime(clock, bootedAt), ...changes })
}

function toNonce(secret: Uint8Array): string {
  return createHash('sha256').update('countersign/login/v1\0').update(secret).digest('base64url')
}

/** The claims of a valid token, with changes. `undefined` removes a claim. */
function claims(changes: Members = {}): Members {
  return {
    iss: issuer.issuer,
    sub: 'user-1',
    aud: AUDIENCE,
    exp: NOW_S + 3600,
    iat: NOW_S,
    nonce: toNonce(SECRET),
    email: 'someone@example.org',
    ...changes,
  }
}

const base64url = (data: string | Uint8Array) => Buffer.from(data).toString('base64url')
const RS256 = { alg: 'RS256', kid: 'rsa', typ: 'JWT' }

/** Signed by Node over any text, so that tests can use tokens that jose would not create. */
function signText(header: string, payload: string, key: KeyObject, alg = 'RS256'): string {
  const input = `${base64url(header)}.${base64url(payload)}`
  const options: SignKeyObjectInput = { key, dsaEncoding: 'ieee-p1363' }
  if (alg.startsWith('PS')) {
    options.padding = constants.RSA_PKCS1_PSS_PADDING
    options.saltLength = constants.RSA_PSS_SALTLEN_DIGEST
  }
  const hash = alg.startsWith('Ed') ? null : `sha${alg.slice(2)}`
  return `${input}.${base64url(sign(hash, Buffer.from(input), options))}`
}

/** A token signed with the issuer's RSA key as RS256, regardless of its header. */
function token(payload: Members = claims(), header: Members = RS256, key = pairs.rsa.privateKey): string {
  return signText(JSON.stringify(header), JSON.stringify(payload), key)
}

function hmacToken(header: Members, secret: string | Uint8Array): string {
  const input = `${base64url(JSON.stringify(header))}.${base64url(JSON.stringify(claims()))}`
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
}

/** The parts of a valid token, some replaced. */
function splice(changes: { header?: string; payload?: string; signature?: string }): string {
  const [header = '', payload = '', signature = ''] = token().split('.')
  const parts = { header, payload, signature, ...changes }
  return `${parts.header}.${parts.payload}.${parts.signature}`
}

const partOf = (text: string, index: number) => text.split('.')[index] ?? ''

/** A valid payload as text, with additional text before its first member. */
const payloadWith = (members: string) => `{${members},${JSON.stringify(claims()).slice(1)}`

async function outcomeOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    return await promise
  } catch (error) {
    if (!(error instanceof EnclaveError)) throw error
    return error.details === undefined ? error.code : `${error.code}: ${error.details}`
  }
}

const EC_ALGORITHMS = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' } as const

describe('a valid token', () => {
  test.each([
    ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'].map((alg) => [alg, 'rsa', 'rsa'] as const),
    ...Object.entries(EC_ALGORITHMS).map(([alg, name]) => [alg, name, name.replace('P-', 'p')] as const),
    ['EdDSA', 'Ed25519', 'ed25519'] as const,
    ['Ed25519', 'Ed25519', 'ed25519'] as const,
  ])('%s, signed by jose and by Node', async (alg, name, kid) => {
    const { privateKey } = pairs[name]
    const expected = { issuer: issuer.issuer, subject: 'user-1', email: null, issuedAt: NOW_S * 1000 }
    const fromJose = await new SignJWT(claims()).setProtectedHeader({ alg, kid, typ: 'JWT' }).sign(privateKey)
    expect(await createVerifier().verify({ idToken: fromJose, loginSecret: SECRET })).toEqual(expected)
    const fromNode = signText(JSON.stringify({ alg, kid }), JSON.stringify(claims()), privateKey, alg)
    expect(await createVerifier().verify({ idToken: fromNode, loginSecret: SECRET })).toEqual(expected)
  })

  test.each([
    ['verified', { email_verified: true }, 'someone@example.org'],
    ['verified, as Apple writes it', { email_verified: 'true' }, 'someone@example.org'],
    ['not verified', { email_verified: false }, null],
    ['verified by another word', { email_verified: 'yes' }, null],
    ['not a string', { email_verified: true, email: 7 }, null],
    ['empty', { email_verified: true, email: '' }, null],
    ['too long', { email_verified: true, email: `${'a'.repeat(243)}@example.org` }, null],
    ['with a line feed', { email_verified: true, email: 'a\nb@example.org' }, null],
  ])('an e-mail address that is %s', async (_, changes, email) => {
    const user = await createVerifier().verify({ idToken: token(claims(changes)), loginSecret: SECRET })
    expect(user.email).toBe(email)
  })

  test('a nonce with a client key is for this key and secret only', async () => {
    const [clientKey, other] = ['11', '22'].map((byte) => `04${byte.repeat(64)}`)
    const hash = (data: Uint8Array) => createHash('sha256').update(data).digest()
    const tag = Buffer.from('countersign/login/v2\0')
    const preimage = Buffer.concat([tag, hash(SECRET), Buffer.from(clientKey ?? '', 'hex')])
    const idToken = token(claims({ nonce: hash(preimage).toString('base64url') }))
    const verify = (loginSecret: Uint8Array, key?: string) =>
      createVerifier().verify({ idToken, loginSecret, clientKey: key })
    await expect(verify(SECRET, clientKey)).resolves.toHaveProperty('subject', 'user-1')
    await expect(verify(SECRET, other)).rejects.toMatchObject({ code: 'id_token_invalid', details: 'nonce' })
    await expect(verify(SECRET)).rejects.toMatchObject({ code: 'id_token_invalid', details: 'nonce' })
    await expect(verify(new Uint8Array(32), clientKey)).rejects.toMatchObject({ details: 'nonce' })
    const plain = createVerifier().verify({ idToken: token(), loginSecret: SECRET, clientKey })
    await expect(plain).rejects.toMatchObject({ details: 'nonce' })
  })

  test('the second issuer, with its own key and audience', async () => {
    const payload = claims({ iss: second.issuer, aud: 'client-2' })
    const idToken = token(payload, { alg: 'RS256', kid: 'second' }, pairs.rsaOther.privateKey)
    expect(await createVerifier().verify({ idToken, loginSecret: SECRET })).toEqual({
      issuer: second.issuer,
      subject: 'user-1',
      email: null,
      issuedAt: NOW_S * 1000,
    })
  })

  test.each([
    [-600, -600],
    [5, 0],
  ])('issued %i s from now: dated then, but not later than now', async (fromNowS, expectedS) => {
    const idToken = token(claims({ iat: NOW_S + fromNowS }))
    const { issuedAt } = await createVerifier().verify({ idToken, loginSecret: SECRET })
    expect(issuedAt).toBe(1000 * (NOW_S + expectedS))
  })

  test.each<[string, Members]>([
    ['aud as a list of one', { aud: [AUDIENCE] }],
    ['azp that is the audience', { azp: AUDIENCE }],
    ['several audiences with azp', { aud: ['other', AUDIENCE], azp: AUDIENCE }],
    ['exp past by less than the skew', { exp: NOW_S - 4 }],
    ['iat in the future by the skew', { iat: NOW_S + 5 }],
    ['iat 10 minutes ago', { iat: NOW_S - 600 }],
    ['nbf in the future by the skew', { nbf: NOW_S + 5 }],
    ['nbf in the past', { nbf: 0 }],
    ['sub of 255 characters', { sub: 'a'.repeat(255) }],
    ['claims that do not concern us', { at_hash: 'x', nested: { iss: 'x', list: [{ sub: 1 }] }, name: 'Zoë 😀' }],
  ])('%s', async (_name, changes) => {
    const idToken = token(claims(changes))
    expect(await outcomeOf(createVerifier().verify({ idToken, loginSecret: SECRET }))).toHaveProperty('subject')
  })

  test('iat in the second of the boot', async () => {
    const idToken = token(claims({ iat: NOW_S }))
    const verifier = createVerifier({ bootedAt: NOW_S * 1000 })
    expect(await outcomeOf(verifier.verify({ idToken, loginSecret: SECRET }))).toHaveProperty('subject')
  })

  test('one issuer with two audiences: azp selects one, which must be configured', async () => {
    const pinned = { issuer: issuer.issuer, jwksOrigin: issuer.issuer }
    const issuers = ['a', 'b'].map((audience) => ({ ...pinned, audience }))
    const outcome = (changes: Members) =>
      outcomeOf(createVerifier({ issuers }).verify({ idToken: token(claims(changes)), loginSecret: SECRET }))
    expect(await outcome({ aud: 'a' })).toHaveProperty('subject')
    expect(await outcome({ aud: 'b', azp: 'b' })).toHaveProperty('subject')
    expect(await outcome({ aud: ['a', 'b'], azp: 'b' })).toHaveProperty('subject')
    expect(await outcome({ aud: ['a', 'b'] })).toBe('id_token_invalid: azp')
    expect(await outcome({ aud: 'a', azp: 'b' })).toBe('id_token_invalid: azp')
    expect(await outcome({ aud: AUDIENCE })).toBe('id_token_invalid: aud')
  })
})

describe('an invalid token', () => {
  type Case = [name: string, fault: IdTokenFault, idToken: () => string | Promise<string>, secret?: Uint8Array]

  const cases: Case[] = [
    // Shape
    ['empty', 'malformed', () => ''],
    ['two parts', 'malformed', () => token().split('.').slice(0, 2).join('.')],
    ['four parts', 'malformed', () => `${token()}.AAAA`],
    ['an empty signature', 'malformed', () => splice({ signature: '' })],
    ['an empty payload', 'malformed', () => splice({ payload: '' })],
    ['17 KiB', 'size', () => token(claims({ padding: 'a'.repeat(17 * 1024) }))],
    ['a JWE', 'malformed', encryptToken],
    ['padding', 'malformed', () => `${token()}=`],
    ['a line end', 'malformed', () => `${token()}\n`],
    ['the other base64 alphabet', 'malformed', () => splice({ signature: `${'+/'.repeat(170)}AA` })],
    ['stray bits at the end of the signature', 'malformed', withStrayBits],
    ['a header that is not JSON', 'malformed', () => splice({ header: base64url('alg') })],
    ['a header that is a list', 'malformed', () => splice({ header: base64url('[]') })],
    ['a payload that is a list', 'malformed', () => signPayload('[]')],
    ['a payload that is a string', 'malformed', () => signPayload('"a"')],
    ['a payload that is null', 'malformed', () => signPayload('null')],
    ['a payload that is not JSON', 'malformed', () => signPayload('{"iss":')],
    ['a payload with a byte order mark', 'malformed', () => signPayload(`\ufeff${JSON.stringify(claims())}`)],
    ['a payload 17 levels deep', 'malformed', () => signPayload(payloadWith(`"x":${'['.repeat(16)}${']'.repeat(16)}`))],
    ['iss twice', 'duplicate', () => signPayload(payloadWith('"iss":"https://other.example"'))],
    ['iss twice, the same', 'duplicate', () => signPayload(payloadWith(`"iss":"${issuer.issuer}"`))],
    ['sub twice', 'duplicate', () => signPayload(payloadWith('"sub":"other"'))],
    ['sub twice, once escaped', 'duplicate', () => signPayload(payloadWith('"s\\u0075b":"other"'))],
    ['a nested name twice', 'duplicate', () => signPayload(payloadWith('"x":{"a":1,"a":2}'))],
    ['a header member twice', 'duplicate', () => signHeader('{"alg":"none","alg":"RS256","kid":"rsa"}')],
    [
      'a header member twice, once escaped',
      'duplicate',
      () => signHeader('{"alg":"RS256","kid":"x","\\u006bid":"rsa"}'),
    ],

    // Algorithm
    ['alg none', 'alg', () => token(claims(), { ...RS256, alg: 'none' })],
    ['alg None', 'alg', () => token(claims(), { ...RS256, alg: 'None' })],
    ['alg none without a signature', 'malformed', () => splice({ header: base64url('{"alg":"none"}'), signature: '' })],
    ['alg missing', 'alg', () => token(claims(), { kid: 'rsa' })],
    ['alg a list', 'alg', () => token(claims(), { ...RS256, alg: ['RS256'] })],
    ['alg of an object prototype', 'alg', () => token(claims(), { ...RS256, alg: 'constructor' })],
    ['HS256 with the public key as PEM', 'alg', () => hmacToken({ ...RS256, alg: 'HS256' }, toPem())],
    [
      'HS256 with the public key as JWK',
      'alg',
      () => hmacToken({ ...RS256, alg: 'HS256' }, JSON.stringify(issuer.keys[0])),
    ],
    ['HS256 with a symmetric key of the set', 'alg', () => hmacToken({ alg: 'HS256', kid: 'oct' }, SECRET)],
    ['ES256 with an RSA key', 'alg', () => token(claims(), { ...RS256, alg: 'ES256' })],
    ['RS256 with a P-256 key', 'alg', () => token(claims(), { ...RS256, kid: 'p256' })],
    ['ES384 with a P-256 key', 'alg', () => token(claims(), { alg: 'ES384', kid: 'p256' })],
    ['PS256 header over an RS256 signature', 'signature', () => token(claims(), { ...RS256, alg: 'PS256' })],
    ['ES256K', 'alg', () => token(claims(), { alg: 'ES256K', kid: 'p256' })],
    ['ML-DSA-44', 'alg', () => token(claims(), { alg: 'ML-DSA-44', kid: 'rsa' })],

    // Other header members
    ['jku', 'header', () => token(claims(), { ...RS256, jku: `${second.issuer}/keys` })],
    ['jwk with its own key', 'header', signWithOwnKey],
    ['x5u', 'header', () => token(claims(), { ...RS256, x5u: `${second.issuer}/certificate` })],
    ['x5c', 'header', () => token(claims(), { ...RS256, x5c: ['AAAA'] })],
    ['crit', 'header', () => token(claims(), { ...RS256, crit: ['exp'], exp: 1 })],
    ['crit, empty', 'header', () => token(claims(), { ...RS256, crit: [] })],
    ['b64 false', 'header', () => token(claims(), { ...RS256, crit: ['b64'], b64: false })],
    ['b64 true', 'header', () => token(claims(), { ...RS256, b64: true })],
    ['typ at+jwt', 'typ', () => token(claims(), { ...RS256, typ: 'at+jwt' })],
    ['typ logout+jwt', 'typ', () => token(claims(), { ...RS256, typ: 'logout+jwt' })],
    ['typ null', 'typ', () => token(claims(), { ...RS256, typ: null })],

    // Key
    ['kid missing', 'kid', () => token(claims(), { alg: 'RS256' })],
    ['kid empty', 'kid', () => token(claims(), { alg: 'RS256', kid: '' })],
    ['kid a number', 'kid', () => token(claims(), { alg: 'RS256', kid: 1 })],
    ['kid unknown', 'kid', () => token(claims(), { alg: 'RS256', kid: 'unknown' })],
    ['kid of another issuer', 'kid', () => token(claims(), { alg: 'RS256', kid: 'second' }, pairs.rsaOther.privateKey)],
    [
      'a symmetric key of the set under an RSA algorithm',
      'kid',
      () => hmacToken({ alg: 'RS256', kid: 'oct-as-rsa' }, SECRET),
    ],
    [
      'an RSA key of 1024 bits',
      'kid',
      () => token(claims(), { alg: 'RS256', kid: 'rsa1024' }, pairs.rsa1024.privateKey),
    ],
    ['a key for encryption', 'kid', () => token(claims(), { alg: 'RS256', kid: 'enc' }, pairs.rsaOther.privateKey)],

    // Issuer
    ['iss missing', 'iss', () => token(claims({ iss: undefined }))],
    ['iss wrong', 'iss', () => token(claims({ iss: 'https://other.example' }))],
    ['iss with a final slash', 'iss', () => token(claims({ iss: `${issuer.issuer}/` }))],
    ['iss in capitals', 'iss', () => token(claims({ iss: issuer.issuer.toUpperCase() }))],
    ['iss in a list', 'iss', () => token(claims({ iss: [issuer.issuer] }))],
    ['iss of an object prototype', 'iss', () => token(claims({ iss: 'constructor' }))],
    [
      'iss of another pinned issuer, signed with our key under its kid',
      'signature',
      () => token(claims({ iss: second.issuer, aud: 'client-2' }), { alg: 'RS256', kid: 'second' }),
    ],
    [
      'iss of another pinned issuer, with the kid and key of this one',
      'kid',
      () => token(claims({ iss: second.issuer, aud: 'client-2' })),
    ],
    [
      'another pinned issuer for the audience of this one',
      'aud',
      () => token(claims({ iss: second.issuer }), { alg: 'RS256', kid: 'second' }, pairs.rsaOther.privateKey),
    ],

    // Signature
    [
      'the signature cut short',
      'signature',
      () => splice({ signature: base64url(Buffer.from(partOf(token(), 2), 'base64url').subarray(0, -1)) }),
    ],
    ['the signature cut to one byte', 'signature', () => splice({ signature: 'AA' })],
    [
      'the signature of another token',
      'signature',
      () => splice({ signature: partOf(token(claims({ sub: 'other' })), 2) }),
    ],
    [
      'the payload of another token',
      'signature',
      () => splice({ payload: base64url(JSON.stringify(claims({ sub: 'x' }))) }),
    ],
    [
      'the header of another token',
      'signature',
      () => splice({ header: partOf(token(claims(), { alg: 'RS256', kid: 'rsa' }), 0) }),
    ],
    ['a key that is not the issuer’s', 'signature', () => token(claims(), RS256, pairs.rsaOther.privateKey)],
    ['an ECDSA signature of zeros', 'signature', () => signZeros()],
    ['an ECDSA signature in DER', 'signature', () => signDer()],

    // Audience
    ['aud missing', 'aud', () => token(claims({ aud: undefined }))],
    ['aud wrong', 'aud', () => token(claims({ aud: 'other' }))],
    ['aud of the other pinned issuer', 'aud', () => token(claims({ aud: 'client-2' }))],
    ['aud a list without us', 'aud', () => token(claims({ aud: ['other', 'another'], azp: AUDIENCE }))],
    ['aud an empty list', 'aud', () => token(claims({ aud: [] }))],
    ['aud a list with something else than strings', 'aud', () => token(claims({ aud: [AUDIENCE, 1], azp: AUDIENCE }))],
    ['aud a nested list', 'aud', () => token(claims({ aud: [[AUDIENCE]] }))],
    ['several audiences without azp', 'azp', () => token(claims({ aud: [AUDIENCE, 'other'] }))],
    [
      'several audiences with the azp of another',
      'azp',
      () => token(claims({ aud: [AUDIENCE, 'other'], azp: 'other' })),
    ],
    ['azp other', 'azp', () => token(claims({ azp: 'other' }))],
    ['azp null', 'azp', () => token(claims({ azp: null }))],

    // Times
    ['exp missing', 'exp', () => token(claims({ exp: undefined }))],
    ['exp long past', 'exp', () => token(claims({ exp: NOW_S - 3600 }))],
    ['exp past by the skew', 'exp', () => token(claims({ exp: NOW_S - 5 }))],
    ['exp a string', 'exp', () => token(claims({ exp: String(NOW_S + 3600) }))],
    ['exp fractional', 'exp', () => token(claims({ exp: NOW_S + 3600.5 }))],
    ['exp negative', 'exp', () => token(claims({ exp: -1 }))],
    ['exp infinite', 'exp', () => signPayload(JSON.stringify(claims()).replace(/"exp":\d+/, '"exp":1e999'))],
    ['iat missing', 'iat', () => token(claims({ iat: undefined }))],
    ['iat in the future', 'iat', () => token(claims({ iat: NOW_S + 60 }))],
    ['iat in the future, just beyond the skew', 'iat', () => token(claims({ iat: NOW_S + 6 }))],
    ['iat more than 10 minutes ago', 'iat', () => token(claims({ iat: NOW_S - 601 }))],
    ['iat a string', 'iat', () => token(claims({ iat: String(NOW_S) }))],
    ['iat fractional', 'iat', () => token(claims({ iat: NOW_S - 0.5 }))],
    ['iat negative', 'iat', () => token(claims({ iat: -NOW_S }))],
    ['iat null', 'iat', () => token(claims({ iat: null }))],
    ['nbf in the future', 'nbf', () => token(claims({ nbf: NOW_S + 6 }))],
    ['nbf a string', 'nbf', () => token(claims({ nbf: '0' }))],
    ['nbf null', 'nbf', () => token(claims({ nbf: null }))],

    // Login
    ['nonce missing', 'nonce', () => token(claims({ nonce: undefined }))],
    ['nonce wrong', 'nonce', () => token(claims({ nonce: 'a'.repeat(43) }))],
    ['nonce empty', 'nonce', () => token(claims({ nonce: '' }))],
    ['nonce in a list', 'nonce', () => token(claims({ nonce: [toNonce(SECRET)] }))],
    ['nonce with padding', 'nonce', () => token(claims({ nonce: `${toNonce(SECRET)}=` }))],
    [
      'nonce in hex',
      'nonce',
      () => token(claims({ nonce: Buffer.from(toNonce(SECRET), 'base64url').toString('hex') })),
    ],
    ['nonce that is the login secret', 'nonce', () => token(claims({ nonce: base64url(SECRET) }))],
    ['nonce hashed without the tag', 'nonce', () => token(claims({ nonce: hashBare() }))],
    ['nonce of another login secret', 'nonce', () => token(), new Uint8Array(32).fill(8)],
    [
      'a login secret of 31 bytes',
      'login_secret',
      () => token(claims({ nonce: toNonce(SECRET.subarray(1)) })),
      SECRET.subarray(1),
    ],
    ['a login secret of 33 bytes', 'login_secret', () => token(), new Uint8Array(33)],
    ['no login secret', 'login_secret', () => token(), new Uint8Array()],

    // Subject
    ['sub missing', 'sub', () => token(claims({ sub: undefined }))],
    ['sub empty', 'sub', () => token(claims({ sub: '' }))],
    ['sub a number', 'sub', () => token(claims({ sub: 1 }))],
    ['sub of 256 characters', 'sub', () => token(claims({ sub: 'a'.repeat(256) }))],
    ['sub not ASCII', 'sub', () => token(claims({ sub: 'usér' }))],
    ['sub with a zero byte', 'sub', () => token(claims({ sub: 'user-1\0' }))],
    ['sub with a line end', 'sub', () => token(claims({ sub: 'user-1\n' }))],
  ]

  const signPayload = (payload: string) => signText(JSON.stringify(RS256), payload, pairs.rsa.privateKey)
  const signHeader = (header: string) => signText(header, JSON.stringify(claims()), pairs.rsa.privateKey)
  const toPem = () => pairs.rsa.publicKey.export({ type: 'spki', format: 'pem' })
  const hashBare = () => createHash('sha256').update(SECRET).digest('base64url')

  async function encryptToken(): Promise<string> {
    return new CompactEncrypt(Buffer.from(token()))
      .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A128GCM', kid: 'rsa', cty: 'JWT' })
      .encrypt(await exportJWK(pairs.rsa.publicKey))
  }

  async function signWithOwnKey(): Promise<string> {
    const jwk = await exportJWK(pairs.rsaOther.publicKey)
    return token(claims(), { ...RS256, jwk }, pairs.rsaOther.privateKey)
  }

  /** 256 bytes end with a character of which only two bits count. */
  function withStrayBits(): string {
    const good = token()
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    return good.slice(0, -1) + alphabet.charAt(alphabet.indexOf(good.slice(-1)) + 1)
  }

  const es256Input = () => `${base64url('{"alg":"ES256","kid":"p256"}')}.${base64url(JSON.stringify(claims()))}`

  /** CVE-2022-21449: some libraries accepted r = s = 0 for everything. */
  const signZeros = () => `${es256Input()}.${base64url(new Uint8Array(64))}`

  function signDer(): string {
    const signature = sign('sha256', Buffer.from(es256Input()), { key: pairs['P-256'].privateKey, dsaEncoding: 'der' })
    return `${es256Input()}.${base64url(signature)}`
  }

  test.each(cases)('%s → %s', async (_name, fault, idToken, secret = SECRET) => {
    const verifier = createVerifier()
    expect(await outcomeOf(verifier.verify({ idToken: await idToken(), loginSecret: secret }))).toBe(
      `id_token_invalid: ${fault}`,
    )
    // A rejected token uses up no nonce.
    expect(await outcomeOf(verifier.verify({ idToken: token(), loginSecret: SECRET }))).toHaveProperty('subject')
  })

  test('rejects iat before the boot by any amount, because the earlier boot may have accepted the token', async () => {
    const verifier = createVerifier({ bootedAt: NOW_S * 1000 + 1 })
    clock.advance(1000)
    const idToken = token(claims({ iat: NOW_S }))
    expect(await outcomeOf(verifier.verify({ idToken, loginSecret: SECRET }))).toBe('id_token_invalid: iat')
  })

  test('rejects values other than strings', async () => {
    const idToken = [token()] as unknown as string
    expect(await outcomeOf(createVerifier().verify({ idToken, loginSecret: SECRET }))).toBe(
      'id_token_invalid: malformed',
    )
  })

  test('rejects an unknown issuer without requesting keys', async () => {
    const idToken = token(claims({ iss: 'https://other.example' }))
    await outcomeOf(createVerifier().verify({ idToken, loginSecret: SECRET }))
    expect([...issuer.requests, ...second.requests]).toEqual([])
  })

  test('requests keys only from the issuer that the token names', async () => {
    await createVerifier().verify({ idToken: token(), loginSecret: SECRET })
    expect(issuer.requests).toHaveLength(2)
    expect(second.requests).toEqual([])
  })

  test('an error quotes nothing of the token and has no cause', async () => {
    for (const [name, , idToken, secret = SECRET] of cases) {
      const text = await idToken()
      const error: unknown = await createVerifier()
        .verify({ idToken: text, loginSecret: secret })
        .catch((thrown) => thrown)
      expect(error, name).toMatchObject({ message: 'the ID token was refused' })
      expect(error, name).not.toHaveProperty('cause')
      expect((error as EnclaveError).details, name).toMatch(/^[a-z_]{3,12}$/)
    }
  })
})

describe('the time', () => {
  const YEAR_S = 31_536_000
  const create = (startedAtS: number) => {
    clock = createFakeClock(startedAtS * 1000)
    const time = createTime({ clock, elapsedMs: () => 0 })
    return { time, verifier: createVerifier({ time }) }
  }
  /** A response of the issuer's server at that time. */
  const answerAt = (fake: FakeIssuer, nowS: number) => {
    for (const [path, value] of [
      [DISCOVERY_PATH, () => ({ issuer: fake.issuer, jwks_uri: fake.issuer + JWKS_PATH })],
      [JWKS_PATH, () => ({ keys: fake.keys })],
    ] as const) {
      fake.answers.set(path, (_request, response) => {
        response.setHeader('date', new Date(nowS * 1000).toUTCString())
        sendJson(response, value())
      })
    }
  }

  test('verifies nothing and uses up no nonce before it is known', async () => {
    const { time, verifier } = create(NOW_S)
    expect(await outcomeOf(verifier.verify({ idToken: token(), loginSecret: SECRET }))).toBe('time_unknown')
    expect(issuer.requests).toEqual([])
    time.learn(NOW_S * 1000)
    expect(await outcomeOf(verifier.verify({ idToken: token(), loginSecret: SECRET }))).toHaveProperty('subject')
  })

  test('is the oldest Date of the issuers’ responses, of which at least one is needed', async () => {
    const { verifier } = create(NOW_S)
    answerAt(issuer, NOW_S + 50)
    answerAt(second, NOW_S + 40)
    expect(await verifier.fetchDate()).toBe((NOW_S + 40) * 1000)
    await second.goDown()
    expect(await verifier.fetchDate()).toBe((NOW_S + 50) * 1000)
    await issuer.goDown()
    expect(await outcomeOf(verifier.fetchDate())).toBe('issuer_unavailable: unreachable')
  })

  test('an issuer that is down at the start affects only its own users', async () => {
    const { time, verifier } = create(NOW_S)
    await issuer.goDown()
    answerAt(second, NOW_S)
    time.learn(await verifier.fetchDate())
    const ofSecond = claims({ iss: second.issuer, aud: 'client-2' })
    const idToken = token(ofSecond, { alg: 'RS256', kid: 'second' }, pairs.rsaOther.privateKey)
    expect(await outcomeOf(verifier.verify({ idToken: token(), loginSecret: SECRET }))).toBe(
      'issuer_unavailable: unreachable',
    )
    expect(await verifier.verify({ idToken, loginSecret: SECRET })).toMatchObject({ issuer: second.issuer })
    await issuer.comeBack()
    clock.advance(30_000)
    const later = { idToken: token(claims({ nonce: toNonce(OTHER_SECRET) })), loginSecret: OTHER_SECRET }
    expect(await verifier.verify(later)).toMatchObject({ issuer: issuer.issuer })
  })

  test('a clock set back by a year makes no token valid again', async () => {
    const { time, verifier } = create(NOW_S)
    answerAt(issuer, NOW_S + YEAR_S)
    answerAt(second, NOW_S + YEAR_S)
    time.learn(await verifier.fetchDate())
    expect(await outcomeOf(verifier.verify({ idToken: token(), loginSecret: SECRET }))).toBe('id_token_invalid: exp')
  })

  test('a token’s time of issue raises it', async () => {
    const { time, verifier } = create(NOW_S)
    time.learn(NOW_S * 1000)
    await verifier.verify({ idToken: token(claims({ iat: NOW_S + 5 })), loginSecret: SECRET })
    expect(time.floor()).toBe((NOW_S + 5) * 1000)
  })

  test('a rejected token does not raise it', async () => {
    const { time, verifier } = create(NOW_S)
    time.learn(NOW_S * 1000)
    await outcomeOf(verifier.verify({ idToken: token(claims({ iat: NOW_S + 6 })), loginSecret: SECRET }))
    await outcomeOf(verifier.verify({ idToken: token(claims({ iat: NOW_S + 5, aud: 'x' })), loginSecret: SECRET }))
    expect(time.floor()).toBe(NOW_S * 1000)
  })

  test.each(['', 'yesterday', '2026-01-01T00:00:00Z', 'Thursday, 01-Jan-26 00:00:00 GMT'])(
    'ignores a Date of %j',
    async (date) => {
      const { verifier } = create(NOW_S)
      for (const fake of [issuer, second]) {
        fake.answers.set(JWKS_PATH, (_request, response) => {
          response.sendDate = false
          if (date !== '') response.setHeader('date', date)
          sendJson(response, { keys: fake.keys })
        })
      }
      expect(await outcomeOf(verifier.fetchDate())).toBe('issuer_unavailable: date')
    },
  )
})

describe('a token used twice', () => {
  test('is rejected', async () => {
    const verifier = createVerifier()
    const idToken = token()
    await verifier.verify({ idToken, loginSecret: SECRET })
    expect(await outcomeOf(verifier.verify({ idToken, loginSecret: SECRET }))).toBe('id_token_replayed')
  })

  test('is accepted by another enclave, which has a separate list', async () => {
    const idToken = token()
    for (const verifier of [createVerifier(), createVerifier()]) {
      expect(await outcomeOf(verifier.verify({ idToken, loginSecret: SECRET }))).toHaveProperty('subject')
    }
  })

  test('is rejected in another spelling: the nonce counts, not the text', async () => {
    const verifier = createVerifier()
    await verifier.verify({ idToken: token(), loginSecret: SECRET })
    const again = token(claims({ iat: NOW_S - 1, jti: 'x' }), { ...RS256, alg: 'RS256', typ: undefined })
    expect(await outcomeOf(verifier.verify({ idToken: again, loginSecret: SECRET }))).toBe('id_token_replayed')
  })

  test('concurrently: exactly one of ten is accepted, with and without cached keys', async () => {
    for (const isWarm of [false, true]) {
      const verifier = createVerifier()
      const other = new Uint8Array(32).fill(9)
      if (isWarm) await verifier.verify({ idToken: token(claims({ nonce: toNonce(other) })), loginSecret: other })
      const idToken = token()
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, () => outcomeOf(verifier.verify({ idToken, loginSecret: SECRET }))),
      )
      expect(outcomes.filter((outcome) => outcome === 'id_token_replayed')).toHaveLength(9)
    }
  })

  test('is rejected for its whole lifetime: first as used, then as too old', async () => {
    const verifier = createVerifier()
    const idToken = token(claims({ iat: NOW_S + 5 }))
    const again = () => outcomeOf(verifier.verify({ idToken, loginSecret: SECRET }))
    expect(await again()).toHaveProperty('subject')
    clock.advance(605_000)
    expect(await again()).toBe('id_token_replayed')
    clock.advance(1)
    expect(await again()).toBe('id_token_invalid: iat')
  })

  test('is rejected after its nonce was deleted, even if the clock is set back', async () => {
    const verifier = createVerifier()
    const idToken = token()
    await verifier.verify({ idToken, loginSecret: SECRET })
    clock.advance(700_000)
    const later = new Uint8Array(32).fill(9)
    const laterToken = token(claims({ iat: NOW_S + 700, nonce: toNonce(later) }))
    await verifier.verify({ idToken: laterToken, loginSecret: later })
    clock.advance(-700_000)
    expect(await outcomeOf(verifier.verify({ idToken, loginSecret: SECRET }))).toBe('id_token_invalid: iat')
  })

  test('its nonce is deleted once no token of that time could be accepted, which limits memory', async () => {
    const verifier = createVerifier()
    await verifier.verify({ idToken: token(), loginSecret: SECRET })
    clock.advance(601_000)
    // A new sign-in with the same secret, which only the issuer can have confirmed.
    const idToken = token(claims({ iat: NOW_S + 601 }))
    expect(await outcomeOf(verifier.verify({ idToken, loginSecret: SECRET }))).toHaveProperty('subject')
  })

  test('a rejected token uses up nothing, and a token is accepted after its issuer comes back', async () => {
    await issuer.goDown()
    const verifier = createVerifier()
    const idToken = token()
    expect(await outcomeOf(verifier.verify({ idToken, loginSecret: SECRET }))).toBe('issuer_unavailable: unreachable')
    await issuer.comeBack()
    expect(await outcomeOf(verifier.verify({ idToken, loginSecret: SECRET }))).toHaveProperty('subject')
  })
})

describe('key changes', () => {
  let sequence = 0
  /** A valid token of a separate login, at the clock's time. */
  async function signIn(verifier: ReturnType<typeof createVerifier>, header: Members, key: KeyObject) {
    const loginSecret = createHash('sha256').update(String(sequence++)).digest()
    const iat = Math.floor(clock.now() / 1000)
    const idToken = token(claims({ iat, exp: iat + 3600, nonce: toNonce(loginSecret) }), header, key)
    return outcomeOf(verifier.verify({ idToken, loginSecret }))
  }

  test('finds a new kid before the cache expires', async () => {
    const verifier = createVerifier()
    expect(await signIn(verifier, RS256, pairs.rsa.privateKey)).toHaveProperty('subject')
    issuer.keys = [await toJwk('rsaOther', 'new')]
    clock.advance(30_000)
    expect(await signIn(verifier, { alg: 'RS256', kid: 'new' }, pairs.rsaOther.privateKey)).toHaveProperty('subject')
    expect(await signIn(verifier, RS256, pairs.rsa.privateKey)).toBe('id_token_invalid: kid')
  })

  test('uses cached keys for 24 hours while the issuer is down', async () => {
    const verifier = createVerifier()
    await signIn(verifier, RS256, pairs.rsa.privateKey)
    await issuer.goDown()
    clock.advance(3_600_000)
    expect(await signIn(verifier, RS256, pairs.rsa.privateKey)).toHaveProperty('subject')
    clock.advance(23 * 3_600_000)
    expect(await signIn(verifier, RS256, pairs.rsa.privateKey)).toBe('issuer_unavailable: unreachable')
  })

  test('a silent issuer delays a sign-in only for the time limit', async () => {
    issuer.answers.set('/keys', () => {})
    const verifier = createVerifier({ timeoutMs: 50 })
    expect(await signIn(verifier, RS256, pairs.rsa.privateKey)).toBe('issuer_unavailable: timeout')
  })
})
