import { fromHex, type Hex, type Kind, toHex, toStampBytes } from '@countersign/protocol'
import { hashMessage, sha256 } from 'viem'
import { hashAuthorization } from 'viem/utils'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ServiceClient } from '../client/ServiceClient.ts'
import { attestVault, attestWallet, revokeKey } from '../vaults/vaultCalls.ts'
import { boundSession, endSessions, listSessions } from './boundSession.ts'
import type { ClientKey } from './keyStore.ts'

const API = 'https://api.example'
const ADDRESS = `0x${'a1'.repeat(20)}` as Hex
const VAULT = `0x${'b2'.repeat(20)}` as Hex
const POLICY = 'c3'.repeat(32)
const OWN_ID = 'ab'.repeat(8)
const NOW = Date.parse('2026-03-01T12:00:00.000Z')

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const pair = await crypto.subtle.generateKey(ALGORITHM, false, ['sign', 'verify'])
const publicKey = toHex(new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey)))
const sign = async (bytes: Uint8Array<ArrayBuffer>) =>
  new Uint8Array(await crypto.subtle.sign(ALGORITHM, pair.privateKey, bytes))
const key: ClientKey = { publicKey, sign }

const calls: { path: string; body: Record<string, unknown> | undefined }[] = []
let session: { kind: string; clientKey: string | null; offsetMs: number } | undefined

function answer(path: string): [status: number, body: object] {
  const iso = (ms: number) => new Date(ms).toISOString()
  if (session === undefined) return [401, { code: 'not_authenticated' }]
  const { kind, clientKey, offsetMs } = session
  const info = { kind, clientKey, createdAt: iso(NOW), expiresAt: iso(NOW + 3_600_000), time: iso(NOW + offsetMs) }
  const provenance = { entropyHash: '00'.repeat(32), entropySig: '00'.repeat(64), satelliteSource: 'test' }
  const vault = { address: VAULT, policyHash: POLICY, policyCid: 'bafy', policy: {}, createdAt: iso(NOW) }
  const answers: Record<string, object> = {
    '/auth/me': { id: 'u1', email: 'a@example.test', name: null },
    '/auth/session': info,
    '/auth/sessions': { sessions: [{ id: OWN_ID, ...info, lastSeenAt: iso(NOW), isCurrent: true }] },
    '/auth/logout': { ok: true },
    '/wallet/me': { address: ADDRESS, createdAt: iso(NOW), provenance },
    '/vaults': { vaults: [vault] },
  }
  return path in answers ? [200, answers[path] as object] : [403, { code: 'stamp_invalid' }]
}

beforeEach(() => {
  calls.length = 0
  session = { kind: 'bound', clientKey: publicKey, offsetMs: 0 }
  vi.useFakeTimers({ now: NOW, toFake: ['Date'] })
  vi.stubGlobal('fetch', async (url: string, { body }: RequestInit) => {
    const path = url.slice(API.length)
    calls.push({ path, body: typeof body === 'string' ? JSON.parse(body) : undefined })
    const [status, value] = answer(path)
    return new Response(JSON.stringify(value), { status })
  })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const createClient = (options = { key }) =>
  new ServiceClient({ apiBaseUrl: API, chainId: 1, rpcUrl: 'http://127.0.0.1:1', session: boundSession(options) })

type Expected = { address: Hex; vault: { policy: string; rule: number | null } | null; kind: Kind; digest: Hex | null }

/** Checks the stamp of the last request. */
async function expectStamp({ digest, ...expected }: Expected, issuedMs = NOW) {
  const { stamp } = (calls.at(-1)?.body ?? {}) as { stamp: { issuedMs: number; signature: string } }
  const bytes = toStampBytes({ ...expected, digest: digest && fromHex(digest.slice(2)), issuedMs })
  expect(stamp.issuedMs).toBe(issuedMs)
  expect(await crypto.subtle.verify(ALGORITHM, pair.publicKey, fromHex(stamp.signature), bytes)).toBe(true)
}

describe('every request for a signature has a stamp', () => {
  const digest = `0x${'d4'.repeat(32)}` as Hex
  const txMetadata = { chainId: 1, nonce: 0, to: ADDRESS, value: '0', data: '0x', gas: '21000' } as never

  test('a transaction of the wallet', async () => {
    await createClient()
      .api.signDigest({ digest, txMetadata })
      .catch(() => {})
    await expectStamp({ address: ADDRESS, vault: null, kind: 'transaction', digest })
  })

  test('a transaction of a vault, with its policy and rule', async () => {
    await createClient()
      .api.signDigest({ digest, txMetadata, wallet: VAULT, rule: 3 })
      .catch(() => {})
    await expectStamp({ address: VAULT, vault: { policy: POLICY, rule: 3 }, kind: 'transaction', digest })
  })

  test('a message, with the digest that the SDK computes', async () => {
    await createClient()
      .signMessage({ message: 'hello' })
      .catch(() => {})
    await expectStamp({ address: ADDRESS, vault: null, kind: 'message', digest: hashMessage('hello') })
    // Only the check before the stamp reads the wallet: the service can't name another one for the stamp.
    expect(calls.filter(({ path }) => path === '/wallet/me')).toHaveLength(1)
  })

  test('an authorization', async () => {
    const authorization = { address: VAULT, chainId: 1, nonce: 5 }
    await createClient()
      .signAuthorization(authorization)
      .catch(() => {})
    await expectStamp({
      address: ADDRESS,
      vault: null,
      kind: 'authorization',
      digest: hashAuthorization(authorization),
    })
  })

  test('the addresses of wallet and vault', async () => {
    await attestWallet(createClient()).catch(() => {})
    await expectStamp({ address: ADDRESS, vault: null, kind: 'address', digest: null })
    await attestVault(createClient(), { address: VAULT }).catch(() => {})
    await expectStamp({ address: VAULT, vault: { policy: POLICY, rule: null }, kind: 'address', digest: null })
  })
})

test('the revocation of a key has a stamp without a rule', async () => {
  const key = 'd5'.repeat(32)
  await revokeKey(createClient(), { address: VAULT }, key).catch(() => {})
  const vault = { policy: POLICY, rule: null }
  await expectStamp({ address: VAULT, vault, kind: 'revocation', digest: sha256(`0x${key}`) })
})

describe('clocks', () => {
  test.each([-9, 9])('corrects a clock that is off by %i minutes', async (minutes) => {
    session = { kind: 'bound', clientKey: publicKey, offsetMs: minutes * 60_000 }
    await attestWallet(createClient()).catch(() => {})
    await expectStamp({ address: ADDRESS, vault: null, kind: 'address', digest: null }, NOW + minutes * 60_000)
  })

  test.each([-11, 11])('sends nothing with a clock that is off by %i minutes', async (minutes) => {
    session = { kind: 'bound', clientKey: publicKey, offsetMs: minutes * 60_000 }
    await expect(attestWallet(createClient())).rejects.toMatchObject({ code: 'clock_wrong' })
    expect(calls.map(({ path }) => path)).not.toContain('/wallet/attest')
  })
})

describe('sessions without the key', () => {
  test.each([
    ['a cookie session', null],
    ['the session of another browser', `04${'00'.repeat(64)}`],
  ])('refuses %s', async (_, clientKey) => {
    session = { kind: clientKey === null ? 'cookie' : 'bound', clientKey, offsetMs: 0 }
    const client = createClient()
    await expect(client.api.me()).rejects.toMatchObject({ code: 'session_not_bound' })
    await expect(attestWallet(client)).rejects.toMatchObject({ code: 'session_not_bound' })
    expect(calls.map(({ path }) => path)).not.toContain('/wallet/attest')
  })

  test('reports a signed-out user as signed out', async () => {
    session = undefined
    expect(await createClient().api.me()).toBeNull()
  })
})

test('a sign-in names the key', async () => {
  const client = createClient()
  const url = await client.config.session?.startLogin(
    client.config,
    client.loginUrl({ returnTo: 'https://app.example/' }),
  )
  expect(new URL(url as string).searchParams.get('client_key')).toBe(publicKey)
  expect(new URL(url as string).searchParams.get('return_to')).toBe('https://app.example/')
})

test('fails with `client_key_unavailable` without IndexedDB', async () => {
  const client = createClient({} as never)
  const login = client.config.session?.startLogin(client.config, client.loginUrl())
  await expect(login).rejects.toMatchObject({ code: 'client_key_unavailable' })
})

test('lists sessions, and ends one or all', async () => {
  const client = createClient()
  expect(await listSessions(client)).toMatchObject([{ id: OWN_ID, kind: 'bound', isCurrent: true }])
  await endSessions(client, { session: '0123456789abcdef' })
  await endSessions(client, { session: OWN_ID })
  await endSessions(client, { all: true })
  const bodies = calls.filter(({ path }) => path === '/auth/logout').map(({ body }) => body)
  expect(bodies).toEqual([{ session: '0123456789abcdef' }, undefined, { all: true }])
})
