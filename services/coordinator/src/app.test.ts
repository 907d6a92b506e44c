import { readFileSync } from 'node:fs'
import { errorCodes } from '@countersign/protocol/errorCodes'
import type { AttestationReceiptV1 } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { API, APP, createTestApp, OTHER_APP, signBody, signed, toDigest, txMetadata } from '../test/http/testApp.ts'
import { createFakeWitness, toFakeProvenance } from '../test/ports.ts'
import { toCompleteProof } from '../test/proofs/completeProof.ts'
import { createMemoryStore } from '../test/store/memoryStore.ts'
import { CoordinatorError, type CoordinatorErrorCode } from './errors.ts'
import type { Proof } from './store/proofs.ts'

const golden = new URL('../../../packages/receipt/spec/golden/receipt.json', import.meta.url)
const receipt = JSON.parse(readFileSync(golden, 'utf8')) as AttestationReceiptV1

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const completeProof = toCompleteProof(receipt)
const { slug } = completeProof

async function expectProblem(response: Response, code: CoordinatorErrorCode) {
  const body = (await response.json()) as Record<string, unknown>
  expect([body.code, response.status, body.status]).toEqual([code, errorCodes[code].status, errorCodes[code].status])
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(body).toMatchObject({
    type: `${API}/docs/errors#${code}`,
    title: expect.any(String),
    requestId: response.headers.get('x-request-id'),
    retryable: errorCodes[code].retryable,
  })
  return body
}

async function signedInApp(...args: Parameters<typeof createTestApp>) {
  const test = createTestApp(...args)
  const browser = test.browser()
  await browser.signIn()
  return { ...test, user: browser }
}

describe('GET /auth/me (specification §4: current-user lookup)', () => {
  test('returns a SessionUser', async () => {
    const { user } = await signedInApp()
    const response = await user.get('/auth/me')
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({
      id: expect.stringMatching(UUID),
      email: 'alice@mail.example',
      name: 'Alice',
    })
  })

  test('returns a null name', async () => {
    const test = createTestApp()
    const browser = test.browser()
    await browser.signIn('/auth/other')
    expect(await (await browser.get('/auth/me')).json()).toMatchObject({ name: null })
  })

  test('returns 401 without a session', async () => {
    await expectProblem(await createTestApp().request('/auth/me'), 'not_authenticated')
  })
})

describe('sessions (specification §5.2, design §2)', () => {
  const calls = [
    ['GET', '/auth/me'],
    ['GET', '/wallet/me'],
    ['GET', '/wallet/transactions'],
    ['GET', '/proofs/export'],
    ['GET', '/vaults'],
    ['POST', '/auth/logout'],
    ['POST', '/wallet/provision'],
    ['POST', '/sign/digest'],
  ] as const
  const body = (path: string) => (path === '/sign/digest' ? { body: JSON.stringify(signBody) } : {})

  const name = '__Host-countersign-session'
  const foreign: [string, string][] = [
    ['no cookie', ''],
    ['an empty secret', `${name}=`],
    ['an unknown secret', `${name}=${'00'.repeat(32)}`],
    ['a secret too short', `${name}=${'00'.repeat(31)}`],
    ['a secret in upper case', `${name}=${'AA'.repeat(32)}`],
    ['a cookie without the prefix', `countersign-session=${'00'.repeat(32)}`],
    ['two secrets', `${name}=${'00'.repeat(32)}; ${name}=${'11'.repeat(32)}`],
    ['an SQL fragment', `${name}=' OR 1=1 --`],
  ]

  for (const [method, path] of calls) {
    test.each(foreign)(`${method} ${path} with %s returns 401`, async (_, cookie) => {
      const app = createTestApp()
      const headers = { origin: APP, 'content-type': 'application/json', ...(cookie === '' ? {} : { cookie }) }
      await expectProblem(await app.request(path, { method, headers, ...body(path) }), 'not_authenticated')
      expect([app.store.writes, app.entropy.taken, app.signings]).toEqual([0, 0, []])
    })

    test(`${method} ${path} after a sign-out returns 401, even with a copy of the cookie`, async () => {
      const { user, request } = await signedInApp()
      const cookie = `${name}=${user.jar.get(name)}`
      await user.post('/auth/logout')
      const headers = { origin: APP, 'content-type': 'application/json', cookie }
      await expectProblem(await request(path, { method, headers, ...body(path) }), 'not_authenticated')
    })

    test(`${method} ${path} after 2 h without requests returns 401 session_expired`, async () => {
      const { user, clock } = await signedInApp()
      clock.advance(7_200_000)
      const init = { method, headers: { origin: APP, 'content-type': 'application/json' }, ...body(path) }
      await expectProblem(await user.send(path, init), 'session_expired')
    })

    test(`${method} ${path} of a user whose key was changed in the database returns 403 key_binding_mismatch`, async () => {
      const { user, store } = await signedInApp()
      const { users } = store.rows
      for (const [key, row] of users) users.set(key, { ...row, kmsKeyId: 'ff'.repeat(16) })
      const init = { method, headers: { origin: APP, 'content-type': 'application/json' }, ...body(path) }
      await expectProblem(await user.send(path, init), 'key_binding_mismatch')
    })
  }

  test('a session ends after 12 h even if it is used', async () => {
    const { user, clock } = await signedInApp()
    for (let hour = 1; hour < 12; hour++) {
      clock.advance(3_600_000)
      expect((await user.get('/auth/me')).status).toBe(200)
    }
    clock.advance(3_600_000)
    await expectProblem(await user.get('/auth/me'), 'session_expired')
  })

  test('a session ends with its grant if that is sooner', async () => {
    const test = createTestApp()
    test.enclave.ttlMs = 60_000
    const user = test.browser()
    const response = await user.signIn()
    expect(response.headers.getSetCookie().join('\n')).toContain('Max-Age=60;')
    test.clock.advance(60_000)
    await expectProblem(await user.get('/auth/me'), 'session_expired')
  })
})

describe('POST /auth/logout', () => {
  test('returns { ok: true } and clears the cookie; a second call returns 401', async () => {
    const { user, store } = await signedInApp()
    const response = await user.post('/auth/logout')
    expect([response.status, await response.json()]).toEqual([200, { ok: true }])
    expect(response.headers.getSetCookie()).toEqual([
      '__Host-countersign-choice=select-account; Max-Age=2592000; Path=/; HttpOnly; SameSite=None; Secure',
      '__Host-countersign-session=; Max-Age=0; Path=/; HttpOnly; SameSite=None; Secure',
    ])
    expect(store.rows.sessions.size).toBe(0)
    await expectProblem(await user.post('/auth/logout'), 'not_authenticated')
  })

  test('keeps the user’s other sessions', async () => {
    const { user, browser } = await signedInApp()
    const second = browser()
    await second.signIn()
    await user.post('/auth/logout')
    expect((await second.get('/auth/me')).status).toBe(200)
  })

  test('a thief of the session cannot exhaust the limit for signing out: only failures count, by address', async () => {
    const rateLimits = { sign: 'off', provision: 'off', auth: { count: 3, seconds: 60 }, proof: 'off' } as const
    const { user, request } = await signedInApp({ config: { rateLimits } })
    const cookie = [...user.jar].map((pair) => pair.join('=')).join('; ')
    const headers = { origin: APP, 'content-type': 'application/json', cookie }
    const disturb = (address: string) => request('/auth/logout', { method: 'POST', headers, body: '{"x":1}', address })
    for (let count = 0; count < 3; count++) await expectProblem(await disturb('198.51.100.7'), 'invalid_request')
    await expectProblem(await disturb('198.51.100.7'), 'rate_limited')
    // Also from the owner's address, whose last sign-in of this minute is used here.
    await expectProblem(await disturb('203.0.113.1'), 'invalid_request')
    await expectProblem(await disturb('203.0.113.1'), 'rate_limited')
    expect((await user.post('/auth/logout')).status).toBe(200)
    // Without a session it counts.
    await expectProblem(await user.post('/auth/logout'), 'rate_limited')
  })

  test('a sign-out that fails because of the service does not count', async () => {
    const rateLimits = { sign: 'off', provision: 'off', auth: { count: 3, seconds: 60 }, proof: 'off' } as const
    const { user, store } = await signedInApp({ config: { rateLimits } })
    store.isDown = true
    for (let count = 0; count < 5; count++) {
      await expectProblem(await user.post('/auth/logout'), 'database_unavailable')
    }
    store.isDown = false
    expect((await user.post('/auth/logout')).status).toBe(200)
    // Its callback and this call are two of the three.
    expect((await user.get('/auth/google')).status).toBe(302)
  })
})

describe('GET /wallet/me and POST /wallet/provision', () => {
  test('does not return an address that was changed in the database, because payments to it would be lost', async () => {
    const { user, store } = await signedInApp()
    const { wallets } = store.rows
    for (const [id, wallet] of wallets) wallets.set(id, { ...wallet, address: `0x${'66'.repeat(20)}` })
    await expectProblem(await user.get('/wallet/me'), 'key_binding_mismatch')
    await expectProblem(await user.post('/wallet/provision', {}), 'key_binding_mismatch')
  })

  test('the wallet exists after the first sign-in, with its entropy sample', async () => {
    const { user } = await signedInApp()
    const response = await user.get('/wallet/me')
    expect([response.status, await response.json()]).toEqual([
      200,
      {
        address: expect.stringMatching(/^0x[0-9a-f]{40}$/),
        createdAt: '2026-06-15T12:00:00.000Z',
        provenance: toFakeProvenance(createFakeWitness(1)),
      },
    ])
  })

  test('returns 404 wallet_not_found without a wallet, and provisioning creates one', async () => {
    const test = createTestApp()
    test.entropy.isDown = true
    const user = test.browser()
    await user.signIn()
    await expectProblem(await user.get('/wallet/me'), 'wallet_not_found')
    await expectProblem(await user.post('/wallet/provision'), 'entropy_unavailable')
    test.entropy.isDown = false
    expect((await user.post('/wallet/provision')).status).toBe(200)
    expect((await user.get('/wallet/me')).status).toBe(200)
  })

  test('repeated provisioning returns the same wallet and uses one sample', async () => {
    const { user, entropy, clock } = await signedInApp()
    const first = await (await user.get('/wallet/me')).json()
    for (const body of [undefined, {}]) {
      clock.advance(60_000)
      const again = await user.post('/wallet/provision', body)
      expect([again.status, await again.json()]).toEqual([200, first])
    }
    expect(entropy.taken).toBe(1)
  })

  test('50 concurrent calls create one wallet', async () => {
    const test = createTestApp()
    test.entropy.isDown = true
    const user = test.browser()
    await user.signIn()
    test.entropy.isDown = false
    const answers = await Promise.all(Array.from({ length: 50 }, () => user.post('/wallet/provision')))
    const bodies = new Set(await Promise.all(answers.map((answer) => answer.text())))
    expect([bodies.size, test.store.rows.wallets.size]).toEqual([1, 1])
  })

  test.each([['x'], [[]], [null], [{ userId: 'bob' }], [0]])('rejects the body %j', async (body) => {
    const { user } = await signedInApp()
    await expectProblem(await user.post('/wallet/provision', body), 'invalid_request')
  })

  test('returns neither user nor key id with the wallet', async () => {
    const { user } = await signedInApp()
    expect(Object.keys((await (await user.get('/wallet/me')).json()) as object)).toEqual([
      'address',
      'createdAt',
      'provenance',
    ])
  })
})

describe('POST /sign/digest', () => {
  test('returns signature and slug, and passes secret, grant and key of the session to the signer', async () => {
    const { user, signings, store } = await signedInApp()
    const response = await user.post('/sign/digest', signBody)
    expect([response.status, await response.json()]).toEqual([200, signed])
    const [session] = store.rows.sessions.values()
    const [wallet] = store.rows.wallets.values()
    expect(signings).toEqual([
      {
        sid: user.jar.get('__Host-countersign-session'),
        grant: session?.grant,
        keyId: session?.keyId,
        walletId: wallet?.id,
        address: wallet?.address,
        content: { kind: 'transaction', ...signBody },
      },
    ])
  })

  test('a proxy, page or thief with a copy of the cookie can sign', async () => {
    const { user, request, signings } = await signedInApp()
    const name = '__Host-countersign-session'
    const headers = { origin: APP, 'content-type': 'application/json', cookie: `${name}=${user.jar.get(name)}` }
    const init = { method: 'POST', headers, body: JSON.stringify(signBody), address: '198.51.100.7' }
    expect((await request('/sign/digest', init)).status).toBe(200)
    expect(signings).toHaveLength(1)
  })

  test('every allowed origin can sign for a signed-in user without a confirmation', async () => {
    const { user, signings } = await signedInApp()
    for (const origin of [APP, OTHER_APP]) {
      expect((await user.post('/sign/digest', signBody, { origin })).status).toBe(200)
    }
    expect(signings).toHaveLength(2)
  })

  test('treats upper-case and lower-case hex as the same request', async () => {
    const { user, signings } = await signedInApp()
    const shouted = { ...txMetadata, to: `0x${txMetadata.to.slice(2).toUpperCase()}` as const }
    const digest = `0x${toDigest(txMetadata).slice(2).toUpperCase()}`
    expect((await user.post('/sign/digest', { digest, txMetadata: shouted })).status).toBe(200)
    expect(signings[0]?.content).toMatchObject(signBody)
  })

  const { digest } = signBody
  const bad: [string, CoordinatorErrorCode, unknown][] = [
    ['no body', 'invalid_request', undefined],
    ['an array', 'invalid_request', []],
    ['null', 'invalid_request', null],
    ['a foreign member', 'invalid_request', { ...signBody, keyId: 'aa' }],
    ['no digest', 'invalid_digest', { txMetadata }],
    ['a digest without 0x', 'invalid_digest', { digest: digest.slice(2), txMetadata }],
    ['a digest of 31 bytes', 'invalid_digest', { digest: digest.slice(0, -2), txMetadata }],
    ['a digest of 33 bytes', 'invalid_digest', { digest: `${digest}00`, txMetadata }],
    ['a digest that is a number', 'invalid_digest', { digest: 5, txMetadata }],
    ['a digest in a list', 'invalid_digest', { digest: [digest], txMetadata }],
    ['no txMetadata', 'invalid_tx_metadata', { digest }],
    ['an empty txMetadata', 'invalid_tx_metadata', { digest, txMetadata: {} }],
    ['no recipient', 'unsupported_transaction', { digest, txMetadata: { ...txMetadata, to: null } }],
    ['a gas price', 'unsupported_transaction', { digest, txMetadata: { ...txMetadata, gasPrice: '1' } }],
    ['a value in ether', 'invalid_tx_metadata', { digest, txMetadata: { ...txMetadata, value: '0.1' } }],
    ['a value that is a number', 'invalid_tx_metadata', { digest, txMetadata: { ...txMetadata, value: 1 } }],
    ['chain 0', 'invalid_tx_metadata', { digest, txMetadata: { ...txMetadata, chainId: 0 } }],
    ['a tip above the fee', 'invalid_tx_metadata', { digest, txMetadata: { ...txMetadata, maxFeePerGas: '1' } }],
    ['an empty access list', 'invalid_tx_metadata', { digest, txMetadata: { ...txMetadata, accessList: [] } }],
    ['another value', 'digest_mismatch', { digest, txMetadata: { ...txMetadata, value: '1' } }],
    ['another recipient', 'digest_mismatch', { digest, txMetadata: { ...txMetadata, to: `0x${'11'.repeat(20)}` } }],
    ['another nonce', 'digest_mismatch', { digest, txMetadata: { ...txMetadata, nonce: 8 } }],
    ['another chain', 'digest_mismatch', { digest, txMetadata: { ...txMetadata, chainId: 1 } }],
    ['another digest', 'digest_mismatch', { digest: `0x${'00'.repeat(32)}`, txMetadata }],
  ]
  test.each(bad)('rejects %s before using entropy', async (_, code, body) => {
    const { user, entropy, signings } = await signedInApp()
    const before = entropy.taken
    await expectProblem(await user.post('/sign/digest', body), code)
    expect([entropy.taken - before, signings]).toEqual([0, []])
  })

  test('rejects chains that are not on the list', async () => {
    const { user, signings } = await signedInApp({ config: { allowedChainIds: [84532] } })
    await expectProblem(await user.post('/sign/digest', signBody), 'chain_not_allowed')
    const other = { ...txMetadata, chainId: 84532 }
    const response = await user.post('/sign/digest', { digest: toDigest(other), txMetadata: other })
    expect([response.status, signings.length]).toEqual([200, 1])
  })

  test('returns 409 without a wallet', async () => {
    const test = createTestApp()
    test.entropy.isDown = true
    const user = test.browser()
    await user.signIn()
    await expectProblem(await user.post('/sign/digest', signBody), 'wallet_not_provisioned')
  })

  test('does not sign if the wallet’s row has another key or address', async () => {
    for (const change of [{ kmsKeyId: 'ff'.repeat(16) }, { address: `0x${'ff'.repeat(20)}` } as const]) {
      const { user, store, signings } = await signedInApp()
      for (const [id, wallet] of store.rows.wallets) store.rows.wallets.set(id, { ...wallet, ...change })
      await expectProblem(await user.post('/sign/digest', signBody), 'key_binding_mismatch')
      expect(signings).toEqual([])
    }
  })

  test.each(Object.keys(errorCodes) as CoordinatorErrorCode[])('returns the signer’s error %s', async (code) => {
    const fails = () => Promise.reject(new CoordinatorError(code, 'x'))
    const { user } = await signedInApp({ deps: { sign: fails } })
    const response = await user.post('/sign/digest', signBody).catch((error: Error) => error)
    // The document doesn't list codes that signing never returns, and the response check would reject them.
    if (response instanceof Error) expect(response.message).toContain('which its description does not know')
    else await expectProblem(response, code)
  })
})

describe('GET /proof/:slug', () => {
  test('returns a complete proof without a session', async () => {
    const { request, store } = createTestApp({ config: { ipfsGatewayUrl: 'https://ipfs.example/' } })
    store.rows.proofs.set(slug, completeProof)
    const response = await request(`/proof/${slug}`)
    // Transactions have no `kind`.
    const { kind: _, isFinal: __, ...stored } = completeProof
    expect([response.status, await response.json()]).toEqual([
      200,
      {
        ...stored,
        receipt,
        ipfsUrl: `https://ipfs.example/ipfs/${completeProof.ipfsCid}`,
        createdAt: '2026-06-15T12:00:00.000Z',
      },
    ])
  })

  const nulls = ['ipfsCid', 'ipfsUrl', 'onchainTxHash', 'onchainBlockNumber', 'receipt'] as const
  test.each([
    ['pending_pin', nulls],
    ['pin_failed', nulls],
    ['pending_onchain', ['onchainBlockNumber']],
    ['onchain_failed', ['onchainBlockNumber']],
    ['complete', []],
  ] as const)('in %s the members %j are null, even if the row has values', async (status, expected) => {
    const { request, store } = createTestApp()
    store.rows.proofs.set(slug, { ...completeProof, status })
    const body = (await (await request(`/proof/${slug}`)).json()) as Record<string, unknown>
    expect(nulls.filter((name) => body[name] === null)).toEqual(expected)
    expect(body.status).toBe(status)
  })

  test('returns the same error for unknown and malformed slugs', async () => {
    const { request } = createTestApp()
    const unknown = ['BBBBBBBBBBBBBBBBBBBBBA', 'x', slug.slice(1), `${slug}A`, 'AAAAAAAAAAAAAAAAAAAAAB', '%00', '%27--']
    const bodies = await Promise.all(
      unknown.map(async (text) => {
        const response = await request(`/proof/${text}`, { headers: { 'x-request-id': 'same' } })
        return `${response.status} ${await response.text()}`
      }),
    )
    expect(new Set(bodies).size).toBe(1)
    expect(bodies[0]).toContain('404 ')
    expect(bodies[0]).toContain('proof_not_found')
  })

  test('redirects browsers to the web app, returns JSON to programs, and sets Vary for caches', async () => {
    const { request, store } = createTestApp()
    store.rows.proofs.set(slug, completeProof)
    const ask = (accept: string, path = `/proof/${slug}`) => request(path, { headers: { accept } })
    const page = await ask('text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8')
    expect([page.status, page.headers.get('location')]).toEqual([302, `${APP}/proof/${slug}`])
    for (const accept of ['*/*', 'application/json', 'application/json, text/html', 'text/html;q=0.5, */*']) {
      const response = await ask(accept)
      expect([response.status, response.headers.get('vary')]).toEqual([200, 'Accept, Origin'])
    }
    expect(page.headers.get('vary')).toBe('Accept, Origin')
    expect((await ask('text/html', '/proof/x')).status).toBe(404)
  })

  test.each([
    ['the web app is on the origin of the service', [API]],
    ['there is no web app', []],
  ])('does not redirect if %s', async (_, allowedOrigins) => {
    const { request, store } = createTestApp({ config: { allowedOrigins } })
    store.rows.proofs.set(slug, completeProof)
    expect((await request(`/proof/${slug}`, { headers: { accept: 'text/html' } })).status).toBe(200)
  })

  test('returns 304 for an unchanged ETag and 200 after a change; only final proofs may be cached for long', async () => {
    const { request, store } = createTestApp()
    store.rows.proofs.set(slug, { ...completeProof, status: 'pending_onchain' })
    const first = await request(`/proof/${slug}`)
    const etag = first.headers.get('etag') ?? ''
    expect(first.headers.get('cache-control')).toBe('no-cache')
    for (const sent of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const again = await request(`/proof/${slug}`, { headers: { 'if-none-match': sent } })
      expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag])
      expect(again.headers.get('access-control-allow-origin')).toBe('*')
    }
    store.rows.proofs.set(slug, completeProof)
    const changed = await request(`/proof/${slug}`, { headers: { 'if-none-match': etag } })
    expect([changed.status, changed.headers.get('cache-control')]).toEqual([200, 'no-cache'])
    store.rows.proofs.set(slug, { ...completeProof, isFinal: true })
    const same = { headers: { 'if-none-match': changed.headers.get('etag') ?? '' } }
    const final = await request(`/proof/${slug}`, same)
    expect([final.status, final.headers.get('cache-control')]).toEqual([304, 'public, max-age=3600'])
  })

  test.each([
    ['pending_pin', false, 'no-cache'],
    ['pending_onchain', false, 'no-cache'],
    ['pin_failed', false, 'no-cache'],
    ['onchain_failed', false, 'no-cache'],
    ['complete', false, 'no-cache'],
    ['complete', true, 'public, max-age=3600'],
  ] as const)('in %s, final %s, it is kept as %s, also by 304 and HEAD', async (status, isFinal, kept) => {
    const { request, store } = createTestApp()
    store.rows.proofs.set(slug, { ...completeProof, status, isFinal })
    const got = await request(`/proof/${slug}`)
    const etag = got.headers.get('etag') ?? ''
    expect(etag).toMatch(/^"[A-Za-z0-9_-]{43}"$/)
    const asked = await request(`/proof/${slug}`, { method: 'HEAD' })
    const unchanged = await request(`/proof/${slug}`, { headers: { 'if-none-match': etag } })
    expect([got.status, asked.status, unchanged.status]).toEqual([200, 200, 304])
    for (const { headers } of [got, asked, unchanged]) {
      expect([headers.get('cache-control'), headers.get('etag')]).toEqual([kept, etag])
      // A shared cache must not give one origin the response for another.
      expect(headers.get('vary')).toBe('Accept, Origin')
    }
    expect([await asked.text(), unchanged.headers.get('content-type')]).toEqual(['', null])
  })

  test('the ETag depends on the response only', async () => {
    const { request, store } = createTestApp()
    const etagOf = async (proof: Proof) => {
      store.rows.proofs.set(slug, proof)
      return (await request(`/proof/${slug}`)).headers.get('etag')
    }
    const etag = await etagOf(completeProof)
    expect(await etagOf({ ...completeProof })).toBe(etag)
    expect(await etagOf({ ...completeProof, onchainBlockNumber: 13 })).not.toBe(etag)
    expect(await etagOf({ ...completeProof, onchainTxHash: `0x${'ac'.repeat(32)}` })).not.toBe(etag)
    expect(await etagOf({ ...completeProof, kmsQuoteVerified: false })).not.toBe(etag)
    // Frozen but not pinned, so not part of the response.
    const early = { ...completeProof, status: 'pending_pin' } as const
    expect(await etagOf(early)).toBe(await etagOf({ ...early, ipfsCid: null, receipt: null, onchainTxHash: null }))
  })

  test('a missing proof has no ETag and is not cached', async () => {
    const response = await createTestApp().request(`/proof/${slug}`, { headers: { 'if-none-match': '*' } })
    expect(response.headers.get('etag')).toBeNull()
    await expectProblem(response, 'proof_not_found')
  })

  test.each(['', '""', 'x', '"x', 'W/"x"', ',', '"*"', '** ', 'W/*', '"x", *', '*, *', 'W/', '"'.repeat(99)])(
    'returns the whole proof for If-None-Match: %j',
    async (sent) => {
      const { request, store } = createTestApp()
      store.rows.proofs.set(slug, completeProof)
      expect((await request(`/proof/${slug}`, { headers: { 'if-none-match': sent } })).status).toBe(200)
    },
  )
})

describe('health', () => {
  test('is alive, and ready while database and attestation are available', async () => {
    const { request, store, selfReport } = createTestApp()
    expect(await (await request('/health')).json()).toEqual({ status: 'ok', mode: 'mock' })
    expect(await (await request('/health/ready')).json()).toEqual({ status: 'ready', mode: 'mock' })
    const isMissing = async (code: Parameters<typeof expectProblem>[1], names: string) => {
      const refused = await request('/health/ready')
      expect(await refused.clone().json()).toMatchObject({ detail: `missing: ${names}` })
      await expectProblem(refused, code)
    }
    store.isDown = true
    await isMissing('database_unavailable', 'database')
    expect((await request('/health')).status).toBe(200)
    selfReport.isMissing = true
    await isMissing('database_unavailable', 'database, attestation of the coordinator')
    store.isDown = false
    await isMissing('attestation_invalid', 'attestation of the coordinator')
    await expectProblem(await request('/health/attestation'), 'attestation_invalid')
  })

  test('is ready while a quorum of witnesses cosigns, and lists the missing ones', async () => {
    const logService = { missing: [] as string[], isQuorum: true }
    const { request } = createTestApp({
      deps: {
        logService: {
          findMissing: () => logService.missing,
          isOpen: () => logService.isQuorum,
          findState: async () => undefined,
        },
      },
    })
    expect(await (await request('/health/ready')).json()).toEqual({ status: 'ready', mode: 'mock' })
    logService.missing = ['witness w3.example']
    expect(await (await request('/health/ready')).json()).toEqual({
      status: 'ready',
      mode: 'mock',
      missing: ['witness w3.example'],
    })
    logService.missing = ['log log.example/a', 'witness w2.example', 'witness w3.example']
    logService.isQuorum = false
    const refused = await request('/health/ready')
    expect(await refused.clone().json()).toMatchObject({
      detail: 'missing: log log.example/a, witness w2.example, witness w3.example',
    })
    await expectProblem(refused, 'log_unavailable')
  })

  test('while stopping it is not ready, answers pending requests and closes their connections', async () => {
    let release = () => {}
    const gate = new Promise<void>((resolve) => (release = resolve))
    const { user, request, stop } = await signedInApp({ deps: { sign: () => gate.then(() => signed) } })
    const underWay = user.post('/sign/digest', signBody)
    await new Promise((resolve) => setImmediate(resolve))
    let hasStopped = false
    const stopped = stop().then(() => (hasStopped = true))
    await expectProblem(await request('/health/ready'), 'shutting_down')
    const late = await request('/auth')
    expect([late.status, late.headers.get('connection')]).toEqual([200, 'close'])
    expect([(await request('/health')).status, hasStopped]).toEqual([200, false])
    release()
    expect((await underWay).headers.get('connection')).toBe('close')
    expect((await underWay).status).toBe(200)
    await stopped
    await expectProblem(await request('/auth'), 'shutting_down')
    expect((await request('/health')).status).toBe(200)
  })
})

describe('errors (design §9)', () => {
  test('counts failures by code, and no successes', async () => {
    const observed: string[] = []
    const metrics = { observeProblem: (code: string) => void observed.push(code) }
    const { user, request } = await signedInApp({
      deps: { metrics, sign: () => Promise.reject(new CoordinatorError('enclave_unavailable', 'gone')) },
    })
    await request('/health')
    await request('/nowhere')
    await user.post('/sign/digest', signBody)
    expect(observed).toEqual(['not_found', 'enclave_unavailable'])
  })

  test('an unexpected error becomes internal, and its text is neither returned nor logged', async () => {
    const fails = () => Promise.reject(new RangeError('secret text'))
    const { user, log } = await signedInApp({ deps: { sign: fails } })
    const body = await expectProblem(await user.post('/sign/digest', signBody), 'internal')
    expect(Object.keys(body).sort()).toEqual(['code', 'requestId', 'retryable', 'status', 'title', 'type'])
    expect(JSON.stringify([body, log.lines])).not.toContain('secret text')
    expect(log.lines).toContainEqual(
      expect.objectContaining({ msg: 'Failed', reason: 'RangeError', route: '/sign/digest' }),
    )
  })

  test('does not return details of internal errors, or of foreign errors that look like ours', async () => {
    const lookalike = Object.assign(new Error('inner'), { code: 'not_found', details: 'inner' })
    for (const error of [new CoordinatorError('internal', 'inner', { details: 'inner' }), lookalike]) {
      const { user } = await signedInApp({ deps: { sign: () => Promise.reject(error) } })
      const body = await expectProblem(await user.post('/sign/digest', signBody), 'internal')
      expect(JSON.stringify(body)).not.toContain('inner')
    }
  })

  test('returns 503 if the database is down', async () => {
    const { user, store } = await signedInApp()
    store.isDown = true
    const paths = ['/auth/me', '/wallet/me', '/wallet/transactions', `/proof/${slug}`, `/proof/${slug}/events`]
    for (const path of [...paths, '/auth/google']) {
      await expectProblem(await user.get(path), 'database_unavailable')
    }
  })

  test('GET / redirects to the documentation', async () => {
    const { request } = createTestApp()
    const response = await request('/')
    expect([response.status, response.headers.get('location')]).toEqual([302, '/docs'])
    expect((await request('/docs')).status).toBe(200)
  })

  test.each([
    '/nope',
    '/auth/',
    '/auth/nobody',
    '/auth/nobody/callback',
    '/auth/google/x',
    '/proof',
    '/proof/',
    '/proof/a/b',
    '/proof/a/events/',
    '/ipfs',
    '/ipfs/',
    '/ipfs/a/b',
    '/wallet',
    '/wallet/transactions/1',
    '/Health',
  ])('GET %s is 404', async (path) => {
    await expectProblem(await createTestApp().request(path), 'not_found')
  })

  test.each([
    ['POST', '/auth/me', 'GET, HEAD'],
    ['GET', '/auth/logout', 'POST'],
    ['DELETE', '/auth/logout', 'POST'],
    ['POST', '/auth/google', 'GET, HEAD'],
    ['POST', '/wallet/me', 'GET, HEAD'],
    ['GET', '/wallet/provision', 'POST'],
    ['PUT', '/sign/digest', 'POST'],
    ['GET', '/sign/digest', 'POST'],
    ['POST', '/', 'GET, HEAD'],
    ['POST', '/wallet/transactions', 'GET, HEAD'],
    ['POST', '/proofs/export', 'GET, HEAD'],
    ['POST', '/proof/x', 'GET, HEAD'],
    ['POST', '/proof/x/events', 'GET, HEAD'],
    ['PUT', '/ipfs/x', 'GET, HEAD'],
    ['PATCH', '/health', 'GET, HEAD'],
    ['POST', '/health/attestation', 'GET, HEAD'],
    ['POST', '/openapi.json', 'GET, HEAD'],
  ])('%s %s is 405', async (method, path, allow) => {
    const response = await createTestApp().request(path, { method })
    await expectProblem(response, 'method_not_allowed')
    expect(response.headers.get('allow')).toBe(allow)
  })

  test('returns a caller’s request id only if it is a plain token', async () => {
    const { request } = createTestApp()
    const idOf = async (id: string) =>
      (await request('/health', { headers: { 'x-request-id': id } })).headers.get('x-request-id')
    expect(await idOf('abc-DEF_1.2')).toBe('abc-DEF_1.2')
    for (const id of ['', 'a b', 'a"b', '{}', 'é', 'a'.repeat(65), '<script>']) {
      expect(await idOf(id)).toMatch(/^[0-9a-f]{32}$/)
    }
  })
})

describe('headers', () => {
  test('private responses are not cached, and all have security headers', async () => {
    const { user } = await signedInApp()
    for (const path of ['/auth/me', '/wallet/me', '/wallet/transactions', '/auth/google', '/nope']) {
      const { headers } = await user.get(path)
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('strict-transport-security')).toBe('max-age=31536000')
      expect(headers.get('content-security-policy')).toContain("default-src 'none'")
    }
  })

  test('sends no HSTS over http', async () => {
    const { request } = createTestApp({ config: { publicUrl: 'http://localhost:8080' } })
    expect((await request('/health')).headers.get('strict-transport-security')).toBeNull()
  })

  test('HEAD returns the headers of GET without a body', async () => {
    const response = await createTestApp().request('/health', { method: 'HEAD' })
    expect([response.status, await response.text()]).toEqual([200, ''])
  })
})

describe('rate limits', () => {
  const off = { sign: 'off', provision: 'off', auth: 'off', proof: 'off' } as const

  test('limits signing by user, regardless of the address', async () => {
    const test = createTestApp({ config: { rateLimits: { ...off, sign: { count: 2, seconds: 60 } } } })
    const [user, other] = [test.browser(), test.browser()]
    await user.signIn()
    await other.signIn('/auth/other')
    for (const remaining of ['1', '0']) {
      const { status, headers } = await user.post('/sign/digest', signBody)
      expect([status, headers.get('ratelimit-limit'), headers.get('ratelimit-remaining')]).toEqual([
        200,
        '2',
        remaining,
      ])
    }
    const refused = await user.post('/sign/digest', signBody)
    await expectProblem(refused, 'rate_limited')
    expect([refused.headers.get('retry-after'), refused.headers.get('ratelimit-reset')]).toEqual(['30', '60'])
    expect((await other.post('/sign/digest', signBody)).status).toBe(200)
    test.clock.advance(30_000)
    expect((await user.post('/sign/digest', signBody)).status).toBe(200)
    expect(test.signings.length).toBe(4)
  })

  test('limits new signatures per user; earlier signatures are still returned', async () => {
    const store = createMemoryStore()
    const test = createTestApp({
      config: { signQuotaPerDay: 1 },
      deps: {
        store,
        async sign({ walletId, content: { digest } }) {
          store.rows.signed.set(`${walletId}/${digest}`, { walletId, digest, ...signed })
          store.rows.proofs.set(signed.slug, { ...completeProof, slug: signed.slug, createdAt: test.clock.now() })
          return signed
        },
      },
    })
    const user = test.browser()
    await user.signIn()
    expect((await user.post('/sign/digest', signBody)).status).toBe(200)
    expect((await user.post('/sign/digest', signBody)).status).toBe(200)
    const next = { ...txMetadata, data: '0x01' as const }
    const refused = await user.post('/sign/digest', { digest: toDigest(next), txMetadata: next })
    await expectProblem(refused, 'quota_spent')
    expect(refused.headers.get('retry-after')).toBe('86400')
  })

  test('limits callers without a session by address', async () => {
    const { request } = createTestApp({ config: { rateLimits: { ...off, sign: { count: 1, seconds: 60 } } } })
    const sign = (address: string) => request('/sign/digest', { method: 'POST', address })
    await expectProblem(await sign('203.0.113.1'), 'not_authenticated')
    await expectProblem(await sign('203.0.113.1'), 'rate_limited')
    await expectProblem(await sign('203.0.113.2'), 'not_authenticated')
  })

  test('ignores X-Forwarded-For unless it comes from a trusted proxy', async () => {
    const rateLimits = { ...off, proof: { count: 1, seconds: 60 } }
    const ask = (app: ReturnType<typeof createTestApp>, forwarded: string) =>
      app.request(`/proof/${slug}`, { address: '10.0.0.1', headers: { 'x-forwarded-for': forwarded } })
    const open = createTestApp({ config: { rateLimits } })
    await expectProblem(await ask(open, '198.51.100.1'), 'proof_not_found')
    await expectProblem(await ask(open, '198.51.100.2'), 'rate_limited')
    const behind = createTestApp({ config: { rateLimits, trustedProxies: ['10.0.0.0/8'] } })
    await expectProblem(await ask(behind, '198.51.100.1'), 'proof_not_found')
    await expectProblem(await ask(behind, '198.51.100.2'), 'proof_not_found')
    await expectProblem(await ask(behind, 'anything, 198.51.100.2'), 'rate_limited')
  })

  test('sign-in and provisioning have separate limits', async () => {
    const one = { count: 1, seconds: 60 }
    const test = createTestApp({ config: { rateLimits: { ...off, auth: { count: 2, seconds: 60 }, provision: one } } })
    const user = test.browser()
    await user.signIn()
    await expectProblem(await user.get('/auth/google'), 'rate_limited')
    expect((await user.post('/wallet/provision')).status).toBe(200)
    await expectProblem(await user.post('/wallet/provision'), 'rate_limited')
    expect((await user.get('/wallet/me')).status).toBe(200)
  })
})
