import { createPublicKey, randomBytes, verify } from 'node:crypto'
import { createVerifier } from '@countersign/attestation'
import { simulatedRoots } from '@countersign/attestation/simulator'
import {
  type CoordinatorAttestation,
  computeSnpReportData,
  fromHex,
  type Hex,
  type ProofPayload,
  tags,
  toHex,
  toTagBytes,
  type WalletInfo,
} from '@countersign/protocol'
import { APP_ORIGIN as APP, mains, startService } from '@countersign/testing/launcher'
import { createTx, createUser, type TestUser, toDigest } from '@countersign/testing/stack'
import { getAddress, keccak256, parseSignature, recoverAddress, serializeTransaction } from 'viem'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Backend, type Query, startBackend } from '../test/backend.ts'
import type { SignedAnswer } from '../test/tamperingWire.ts'

type SignResult = { signature: Hex; slug: string }

/** Reads a response that must have this status. */
async function read<Body>(pending: Promise<Response> | Response, status = 200): Promise<Body> {
  const response = await pending
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status })
  return JSON.parse(text) as Body
}

async function refusal(pending: Promise<Response>): Promise<[status: number, code: string]> {
  const response = await pending
  const { code } = (await response.json()) as { code: string }
  return [response.status, code]
}

/** The calls that the session cookie authenticates (specification §5.2). */
const privateCalls = [
  ['GET', '/auth/me'],
  ['GET', '/auth/session'],
  ['GET', '/auth/sessions'],
  ['GET', '/wallet/me'],
  ['POST', '/wallet/provision'],
  ['POST', '/auth/logout'],
  ['POST', '/sign/digest'],
] as const

const flipBit = (hex: unknown) => toHex(fromHex(String(hex)).map((byte, index) => (index === 600 ? byte ^ 1 : byte)))

type Edit = (part: Record<string, unknown>) => Record<string, unknown>
const editBatch = (edit: Edit) => (answer: SignedAnswer) => {
  for (const batch of answer.batches) Object.assign(batch, edit(batch))
}
const editStatement = (edit: Edit) => (answer: SignedAnswer) => {
  for (const { statement } of answer.results) Object.assign(statement, edit(statement))
}

const times = <Value>(count: number, make: (index: number) => Value) => Array.from({ length: count }, (_, i) => make(i))

/* The tests use one database and run in order. */
describe('the backend as separate processes', () => {
  let backend: Backend
  let alice: TestUser
  let bob: TestUser
  /** Their sessions are made to expire by age and by inactivity. */
  let aged: TestUser
  let silent: TestUser
  let nonce = 0
  /** Transactions that were rejected for lack of entropy. */
  const refused: number[] = []
  /** Signatures that the enclave created and that must never be released. */
  const unreleased = new Set<string>()
  /** The text of all tables, and the grants in it. */
  let dump = ''
  let grants: string[] = []
  /** Signed by 50 concurrent requests. The database is checked at the end. */
  let signedAtOnce: Hex = '0x'
  /** Responses that must never change. */
  const answered = new Map<number, SignResult>()

  async function sign(user = alice): Promise<SignResult & { nonce: number }> {
    nonce += 1
    const own = nonce
    const result = await read<SignResult>(user.sign(createTx(own)))
    if (user === alice) answered.set(own, result)
    return { ...result, nonce: own }
  }
  const getProof = (slug: string) => read<ProofPayload>(backend.call(`/proof/${slug}`))
  /** Makes all these calls with one cookie and returns their error codes. */
  async function refusals(cookie: string | undefined): Promise<string[]> {
    const answers = privateCalls.map(async ([method, path]) => {
      const body =
        path === '/sign/digest' ? JSON.stringify({ digest: toDigest(createTx(1)), txMetadata: createTx(1) }) : ''
      const headers = {
        ...(method === 'POST' ? { origin: APP } : {}),
        ...(body === '' ? {} : { 'content-type': 'application/json' }),
        ...(cookie === undefined ? {} : { cookie }),
      }
      const init = { method, headers, ...(body === '' ? {} : { body }) }
      return (await refusal(backend.call(path, init))).join(' ')
    })
    return [...new Set(await Promise.all(answers))]
  }
  /** Responses that arrive while a call hangs, and how many hanging calls were answered by then. */
  async function readMeanwhile(waiting: readonly Promise<Response>[]): Promise<number> {
    let settled = 0
    for (const each of waiting)
      void each.then(
        () => settled++,
        () => settled++,
      )
    const [own = 0, { slug, signature } = { slug: '', signature: '' }] = [...answered][0] ?? []
    await Promise.all([
      read(backend.call('/health')),
      read(backend.call('/health/ready')),
      read(backend.call('/health/attestation')),
      read(alice.get('/auth/me')),
      read(alice.get('/wallet/me')),
      getProof(slug),
    ])
    // Earlier signatures need no enclave.
    expect(await read(alice.sign(createTx(own)))).toEqual({ slug, signature })
    return settled
  }
  async function assertNothingLost() {
    const checks = [...answered].map(async ([own, { signature, slug }]) => {
      expect(await read(alice.sign(createTx(own)))).toEqual({ signature, slug })
      expect((await getProof(slug)).kmsQuoteVerified).toBe(true)
    })
    await Promise.all(checks)
  }

  beforeAll(async () => {
    backend = await startBackend()
    alice = createUser(backend)
    bob = createUser(backend)
    aged = createUser(backend)
    silent = createUser(backend)
  })
  afterAll(() => backend?.stop())

  test('a sign-in without entropy has no wallet and cannot sign; then 50 concurrent provisions create one wallet', async () => {
    // The first of all tests, so that no samples have been read ahead.
    backend.satellite.setFault('down')
    const carol = createUser(backend)
    await carol.signIn('carol')
    expect(await refusal(carol.get('/wallet/me'))).toEqual([404, 'wallet_not_found'])
    expect(await refusal(carol.post('/wallet/provision'))).toEqual([503, 'entropy_unavailable'])
    expect(await refusal(carol.sign(createTx(1)))).toEqual([409, 'wallet_not_provisioned'])
    backend.satellite.setFault()
    const wallets = await Promise.all(times(50, () => read<WalletInfo>(carol.post('/wallet/provision'))))
    expect(new Set(wallets.map((wallet) => JSON.stringify(wallet))).size).toBe(1)
    expect(await read(carol.get('/wallet/me'))).toEqual(wallets[0])
  })

  test('a sign-in creates user and wallet', async () => {
    expect(await refusal(alice.get('/auth/me'))).toEqual([401, 'not_authenticated'])
    expect((await alice.signIn('alice')).origin).toBe(APP)
    await bob.signIn('bob')
    expect(await read(alice.get('/auth/me'))).toMatchObject({ email: 'alice@example.com' })
    const wallet = await read<WalletInfo>(alice.get('/wallet/me'))
    expect(wallet.address).toMatch(/^0x[0-9a-f]{40}$/)
    expect((await read<WalletInfo>(bob.get('/wallet/me'))).address).not.toBe(wallet.address)
  })

  test('the session is an HttpOnly, Lax cookie as in the development template, and the login cookie is cleared', () => {
    const written = alice.setCookies.map((line) =>
      line.replace(/=[0-9a-f]{64};/, '=secret;').replace(/-[0-9a-f]{16}=/, '-id='),
    )
    expect(written).toEqual([
      'countersign-login-id=secret; Max-Age=600; Path=/; HttpOnly; SameSite=Lax',
      'countersign-login-id=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax',
      expect.stringMatching(/^countersign-session=secret; Max-Age=43\d{3}; Path=\/; HttpOnly; SameSite=Lax$/),
      'countersign-choice=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax',
    ])
  })

  test('the user returns to the page that started the sign-in, if it is on an allowed origin', async () => {
    const page = `${APP}/some/page?and=more`
    const visitor = createUser(backend)
    expect((await visitor.signIn('bob', `?return_to=${encodeURIComponent(page)}`)).href).toBe(page)
    await visitor.post('/auth/logout')
    const elsewhere = backend.call(`/auth/google?return_to=${encodeURIComponent('https://elsewhere.example/')}`)
    expect(await refusal(elsewhere)).toEqual([400, 'invalid_request'])
  })

  test('8 concurrent first sign-ins create one user and one wallet', async () => {
    const tabs = times(8, () => createUser(backend))
    await Promise.all(tabs.map((tab) => tab.signIn('dave')))
    const [users, wallets] = await Promise.all([
      Promise.all(tabs.map((tab) => read<{ id: string }>(tab.get('/auth/me')))),
      Promise.all(tabs.map((tab) => read<WalletInfo>(tab.get('/wallet/me')))),
    ])
    expect(new Set(users.map(({ id }) => id)).size).toBe(1)
    expect(new Set(wallets.map((wallet) => JSON.stringify(wallet))).size).toBe(1)
  })

  test('50 concurrent provisions, and later ones, return the same wallet', async () => {
    const wallet = await read(alice.get('/wallet/me'))
    const provisioned = await Promise.all(times(50, () => read(alice.post('/wallet/provision'))))
    for (const each of [...provisioned, await read(alice.post('/wallet/provision'))]) expect(each).toEqual(wallet)
  })

  test('a signature is the wallet’s, and its proof exists immediately', async () => {
    const { address } = await read<WalletInfo>(alice.get('/wallet/me'))
    const { signature, slug, nonce: own } = await sign()
    const { r, s, yParity } = parseSignature(signature)
    expect(await recoverAddress({ hash: toDigest(createTx(own)), signature })).toBe(getAddress(address))
    const { to, data, chainId, nonce: txNonce, ...amounts } = createTx(own)
    const { value, gas, maxFeePerGas, maxPriorityFeePerGas } = amounts
    const unsigned = {
      type: 'eip1559' as const,
      to,
      data,
      chainId,
      nonce: txNonce,
      value: BigInt(value),
      gas: BigInt(gas),
      maxFeePerGas: BigInt(maxFeePerGas),
      maxPriorityFeePerGas: BigInt(maxPriorityFeePerGas),
    }
    expect(keccak256(serializeTransaction(unsigned))).toBe(toDigest(createTx(own)))
    expect(await getProof(slug)).toMatchObject({
      slug,
      txHash: keccak256(serializeTransaction(unsigned, { r, s, yParity })),
      walletAddress: address,
      chainId: 31337,
      status: 'pending_pin',
      kmsQuoteVerified: true,
      receipt: null,
      ipfsCid: null,
    })
  })

  test('the same digest returns the same signature and slug', async () => {
    const { nonce: own, ...first } = await sign()
    expect(await read(alice.sign(createTx(own)))).toEqual(first)
  })

  test('signing a transaction again without its record gives the same signature and an unrelated slug', async () => {
    const { nonce: own, ...first } = await sign(bob)
    await backend.withDatabase(async (query) => {
      const digest = Buffer.from(fromHex(toDigest(createTx(own)).slice(2)))
      const [row] = await query('select id from signings where digest = $1', [digest])
      // Bypasses the triggers that protect records, to simulate a database from before the signature.
      await query('set session_replication_role = replica')
      for (const table of ['proofs', 'signing_lookups'])
        await query(`delete from ${table} where signing_id = $1`, [row?.id])
      await query('delete from signings where id = $1', [row?.id])
    })
    const again = await read<SignResult>(bob.sign(createTx(own)))
    expect(again.signature).toBe(first.signature)
    expect(again.slug).not.toBe(first.slug)
    expect(Buffer.from(again.slug, 'base64url')).toHaveLength(16)
    expect(await refusal(backend.call(`/proof/${first.slug}`))).toEqual([404, 'proof_not_found'])
  })

  test('50 concurrent identical requests create one signature', async () => {
    nonce += 1
    const results = await Promise.all(times(50, () => read<SignResult>(alice.sign(createTx(nonce)))))
    expect(new Set(results.map((result) => JSON.stringify(result))).size).toBe(1)
    signedAtOnce = toDigest(createTx(nonce))
  })

  test('50 concurrent different requests get 50 slugs', async () => {
    const results = await Promise.all(times(50, () => sign()))
    expect(new Set(results.map(({ slug }) => slug)).size).toBe(50)
  })

  test('rejects a digest of another transaction, even if another user signed it', async () => {
    nonce += 1
    expect(await refusal(alice.sign(createTx(nonce), `0x${'22'.repeat(32)}`))).toEqual([422, 'digest_mismatch'])
    const theirs = await sign(bob)
    const own = await read<SignResult>(alice.sign(createTx(theirs.nonce)))
    expect(own.slug).not.toBe(theirs.slug)
    expect(own.signature).not.toBe(theirs.signature)
  })

  test('an unknown slug is 404, and no slug can be derived from another', async () => {
    const bodies = await Promise.all(
      ['AAAAAAAAAAAAAAAAAAAAAA', randomBytes(16).toString('base64url'), 'x'].map(async (slug) => {
        const { requestId, ...body } = await read<Record<string, unknown>>(backend.call(`/proof/${slug}`), 404)
        expect(requestId).toMatch(/./)
        return body
      }),
    )
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1)
    expect(bodies[0]).toMatchObject({ code: 'proof_not_found', status: 404, retryable: false })
  })

  test('/health/attestation returns a report over the key that signs the caller’s nonce', async () => {
    const nonce = randomBytes(32).toString('hex')
    const answer = await read<CoordinatorAttestation>(backend.call(`/health/attestation?nonce=${nonce}`))
    const { report, certificates, publicKey, configHash, signature = '' } = answer
    expect(answer).toMatchObject({ vendor: 'amd-sev-snp', mode: 'mock', nonce })
    const { ek, ask, ark } = certificates
    const verified = await createVerifier({ roots: simulatedRoots() }).verifyReport({
      report: fromHex(report),
      certificates: { ek: fromHex(ek), ask: fromHex(ask), ark: fromHex(ark) },
      at: new Date(),
    })
    const reportData = computeSnpReportData({ publicKey: fromHex(publicKey), configHash: fromHex(configHash) })
    expect(toHex(verified.body.reportData)).toBe(toHex(reportData))
    // RFC 8410: the 12 bytes before an Ed25519 key in its SubjectPublicKeyInfo.
    const spki = Buffer.from(`302a300506032b6570032100${publicKey}`, 'hex')
    const key = createPublicKey({ key: spki, format: 'der', type: 'spki' })
    const message = Buffer.concat([toTagBytes(tags.healthNonce), fromHex(nonce)])
    expect(verify(null, message, key, fromHex(signature))).toBe(true)
  })

  test('only listed origins can act for the user and read responses', async () => {
    const { cookie } = alice
    for (const origin of ['https://evil.example', `${APP}.evil.example`, 'null', undefined]) {
      const headers = { cookie, ...(origin === undefined ? {} : { origin }) }
      for (const path of ['/wallet/provision', '/auth/logout', '/sign/digest']) {
        const response = await backend.call(path, { method: 'POST', headers })
        expect(response.headers.get('access-control-allow-origin')).toBeNull()
        expect((await response.json()).code).toBe('origin_not_allowed')
      }
    }
    const read = async (origin: string) => (await backend.call('/auth/me', { headers: { cookie, origin } })).headers
    expect((await read('https://evil.example')).get('access-control-allow-origin')).toBeNull()
    expect((await read(APP)).get('access-control-allow-origin')).toBe(APP)
    expect((await read(APP)).get('access-control-allow-credentials')).toBe('true')
  })

  test('returns 401 at every call for a missing, foreign, invented, login or duplicate cookie', async () => {
    const [, login = ''] = /^countersign-login-[0-9a-f]+=([0-9a-f]{64});/.exec(alice.setCookies[0] ?? '') ?? []
    expect(login).toMatch(/^[0-9a-f]{64}$/)
    const secret = alice.cookie.split('=')[1]
    for (const cookie of [
      undefined,
      `other-session=${secret}`,
      `__Host-countersign-session=${secret}`,
      `countersign-session=${randomBytes(32).toString('hex')}`,
      `countersign-session=${secret?.toUpperCase()}`,
      `countersign-session=${login}`,
      `${alice.cookie}; ${bob.cookie}`,
    ]) {
      expect(await refusals(cookie)).toEqual(['401 not_authenticated'])
    }
  })

  test('signing in again creates a new secret, and the old one returns 401 at every call', async () => {
    const tab = createUser(backend)
    await tab.signIn('erin')
    const old = tab.cookie
    await tab.signIn('erin')
    expect(tab.cookie).not.toBe(old)
    expect(await refusals(old)).toEqual(['401 not_authenticated'])
    await read(tab.get('/auth/me'))
  })

  test('a sign-out ends only its own session', async () => {
    const other = createUser(backend)
    await other.signIn('alice')
    for (const secret of other.secrets) alice.secrets.add(secret)
    const copy = other.cookie
    expect(await read(other.post('/auth/logout'))).toEqual({ ok: true })
    expect(await refusal(other.get('/auth/me'))).toEqual([401, 'not_authenticated'])
    expect(await refusals(copy)).toEqual(['401 not_authenticated'])
    await read(alice.get('/auth/me'))
  })

  test('an enclave that hangs delays only signing, and the requests are answered when it continues', async () => {
    const first = nonce + 1
    nonce += 40
    backend.freezeEnclave()
    const waiting = times(40, (index) => alice.sign(createTx(first + index)))
    try {
      expect(await readMeanwhile(waiting)).toBe(0)
    } finally {
      backend.wakeEnclave()
    }
    const results = await Promise.all(waiting.map((each) => read<SignResult>(each)))
    for (const [index, result] of results.entries()) answered.set(first + index, result)
    expect(new Set(results.map(({ slug }) => slug)).size).toBe(40)
  })

  test('without the enclave nothing is signed but proofs are still served; a new enclave continues', async () => {
    const { slug } = await sign()
    await backend.stopEnclave('SIGKILL')
    nonce += 1
    expect(await refusal(alice.sign(createTx(nonce)))).toEqual([503, 'enclave_unavailable'])
    expect((await getProof(slug)).slug).toBe(slug)
    await backend.startEnclave()
    await sign()
    await assertNothingLost()
  })

  test('a restart keeps session, proofs and signatures', async () => {
    const before = { me: await read(alice.get('/auth/me')), wallet: await read(alice.get('/wallet/me')) }
    expect(await backend.stopCoordinator('SIGTERM')).toBe(0)
    await backend.startCoordinator()
    expect({ me: await read(alice.get('/auth/me')), wallet: await read(alice.get('/wallet/me')) }).toEqual(before)
    await assertNothingLost()
    await sign()
  })

  test('after a kill during 20 signings, answered ones have proofs and the rest can be requested again', async () => {
    const first = nonce + 1
    nonce += 20
    const waiting = times(20, async (index) => {
      const result = await read<SignResult>(alice.sign(createTx(first + index)))
      answered.set(first + index, result)
    })
    await Promise.race(waiting)
    await backend.stopCoordinator('SIGKILL')
    await Promise.allSettled(waiting)
    expect(Math.max(...answered.keys())).toBeGreaterThanOrEqual(first)

    // Without entropy nothing new can be signed, so these are the earlier signatures.
    backend.satellite.setFault('down')
    // From here on its calls to the enclave go through a wire that later tests tamper with.
    await backend.startCoordinator({ ENCLAVE_URL: backend.wire.url })
    await assertNothingLost()
  })

  test('a satellite that repeats its samples: no sample is used twice, and then nothing is signed', async () => {
    backend.satellite.setFault('replay')
    // The killed coordinator may have died before it claimed the last samples, so those are still unused.
    let last: Response
    do {
      nonce += 1
      last = await alice.sign(createTx(nonce))
      if (last.ok) answered.set(nonce, await read<SignResult>(last))
    } while (last.ok)
    expect(await refusal(Promise.resolve(last))).toEqual([503, 'entropy_unavailable'])
    refused.push(nonce)
  })

  test.each([
    ['that is down', 'down', {}],
    ['that hangs', 'slow', { delayMs: 10_000 }],
    ['that signs wrongly', 'wrong-signature', {}],
  ] as const)('with a satellite %s nothing is signed, and everything else is served', async (_, fault, options) => {
    backend.satellite.setFault(fault, options)
    nonce += 1
    refused.push(nonce)
    const waiting = [alice.sign(createTx(nonce))]
    if (fault === 'slow') expect(await readMeanwhile(waiting)).toBe(0)
    for (const each of waiting) expect(await refusal(each)).toEqual([503, 'entropy_unavailable'])
    // Requests that can't be signed use no sample. Samples bought ahead may still arrive.
    const countRequests = async () => {
      const { requests } = backend.satellite
      expect(await refusal(alice.sign(createTx(nonce), `0x${'22'.repeat(32)}`))).toEqual([422, 'digest_mismatch'])
      return backend.satellite.requests - requests
    }
    await expect.poll(countRequests).toBe(0)
  })

  test('a slow satellite delays only signing', async () => {
    // As slow as reading everything else takes, which is much less than the coordinator's time limit.
    backend.satellite.setFault('slow', { delayMs: 60_000 })
    const waiting = refused.map((own) => alice.sign(createTx(own)))
    expect(await readMeanwhile(waiting)).toBe(0)
    backend.satellite.setFault()
    for (const each of waiting) await read(each)
    await assertNothingLost()
  })

  /** A valid quote over other data. */
  let earlierQuote: unknown
  test.each<[string, [status: number, code: string], (answer: SignedAnswer) => void]>([
    [
      'a quote with one bit changed',
      [502, 'attestation_invalid'],
      editBatch(({ quote }) => {
        earlierQuote = quote
        return { quote: flipBit(quote) }
      }),
    ],
    ['the quote of another batch', [502, 'attestation_invalid'], editBatch(() => ({ quote: earlierQuote }))],
    ['no quote', [503, 'enclave_unavailable'], editBatch(() => ({ quote: undefined }))],
    [
      'a leaf more',
      [502, 'attestation_invalid'],
      editBatch(({ leaves }) => ({ leaves: [leaves, '00'.repeat(32)].flat() })),
    ],
    ['another number in the chain', [502, 'attestation_invalid'], editBatch(() => ({ sequence: 1_000_000 }))],
    ['another boot', [503, 'enclave_unavailable'], editBatch(() => ({ bootId: '00'.repeat(16) }))],
    ['another signature', [502, 'attestation_invalid'], editStatement(() => ({ signature: `0x${'11'.repeat(64)}1b` }))],
    [
      'a statement of another time',
      [502, 'attestation_invalid'],
      editStatement(() => ({ signedAt: '2020-01-01T00:00:00.000Z' })),
    ],
    ['an empty answer', [503, 'enclave_unavailable'], (answer) => Object.assign(answer, { batches: [], results: [] })],
  ])('%s between enclave and coordinator: nothing is released', async (_, expected, tamper) => {
    nonce += 1
    const seen: SignedAnswer[] = []
    backend.wire.setTamper((answer) => {
      seen.push(structuredClone(answer))
      tamper(answer)
    })
    const response = await alice.sign(createTx(nonce))
    const text = await response.text()
    expect([response.status, JSON.parse(text).code]).toEqual(expected)
    // The enclave did sign. The coordinator withholds the signature.
    const [result] = seen.at(-1)?.results ?? []
    const { signature } = result?.statement ?? {}
    expect(signature).toMatch(/^0x[0-9a-f]{130}$/)
    expect(text).not.toContain(String(signature).slice(2))
    unreleased.add(String(signature).slice(2))
  })

  test('without tampering signing continues', async () => {
    backend.wire.setTamper()
    await sign()
  })

  async function dumpTables(query: Query): Promise<string> {
    const tables = await query(
      "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema')",
    )
    const dumps: string[] = []
    for (const { name } of tables) {
      const rows = await query(`select row_to_json(t)::text as row from ${name} as t`)
      dumps.push(...rows.map(({ row }) => String(row)))
    }
    return dumps.join('\n')
  }

  /** Swaps a column's values between alice and bob, as the database's owner could. */
  async function swap(query: Query, table: string, column: string, owner: string) {
    const people = "select id from users where email in ('alice@example.com', 'bob@example.com')"
    await query(
      `update ${table} set ${column} = other.${column} from (select distinct on (${owner}) * from ${table}) as other
      where other.${owner} <> ${table}.${owner} and other.${owner} in (${people}) and ${table}.${owner} in (${people})`,
    )
  }

  test('the database has one row for 50 signings, one wallet per user, no sample twice, and no unreleased signature', async () => {
    await aged.signIn('carol')
    await silent.signIn('dave')
    const { rows, users, wallets, samples, attestations, signatures } = await backend.withDatabase(async (query) => {
      const count = async (text: string, values?: unknown[]) => Number((await query(text, values))[0]?.count)
      const digest = Buffer.from(signedAtOnce.slice(2), 'hex')
      dump = await dumpTables(query)
      grants = (await query('select grant_token from sessions')).map((row) => String(row.grant_token))
      const found = {
        rows: await count('select count(*) from signings where digest = $1', [digest]),
        users: await count('select count(*) from users'),
        wallets: await count('select count(*) from wallets'),
        samples: await count('select count(distinct sample) from signing_lookups'),
        attestations: await count('select count(*) from proofs'),
        signatures: await query("select encode(signature, 'hex') as hex from signings"),
      }
      // For a later test.
      const of = 'where user_id = (select id from users where email = $1)'
      await query(`update sessions set expires_at = now() - interval '1 second' ${of}`, ['carol@example.com'])
      await query(`update sessions set last_seen_at = now() - interval '2 hours' ${of}`, ['dave@example.com'])
      await swap(query, 'users', 'kms_key_id', 'id')
      return found
    })
    expect({ rows, users, wallets }).toEqual({ rows: 1, users: 5, wallets: 5 })
    expect(attestations).toBeGreaterThanOrEqual(answered.size)
    expect(samples).toBe(attestations)
    expect(unreleased.size).toBe(9)
    expect(signatures.filter(({ hex }) => unreleased.has(String(hex)))).toEqual([])
  })

  test('no session secret, code, token or key is in the logs or the database, and no e-mail address or grant in the logs', async () => {
    const secrets = [...alice.secrets, ...bob.secrets, ...(await backend.readKeys())]
    // A login secret, a session secret and a code each, also of the signed-out session; the root secret and 5 keys.
    expect(secrets.length).toBeGreaterThanOrEqual(15)
    const logs = backend.logs()
    expect(logs).toContain('Started the coordinator')
    for (const { email } of backend.oidc.accounts) expect(logs).not.toContain(email)
    expect(dump).toContain('alice@example.com')
    expect(grants.length).toBeGreaterThanOrEqual(3)
    for (const grant of grants) expect(logs).not.toContain(grant)
    for (const text of [logs, dump]) {
      expect(text).not.toContain(backend.oidc.clientSecret)
      // An ID token is a JSON Web Token.
      expect(text).not.toMatch(/eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+/)
      for (const secret of secrets) for (const form of toForms(secret)) expect(text).not.toContain(form)
    }
  })

  function toForms(secret: string): string[] {
    if (!/^[0-9a-f]{64}$/.test(secret)) return [secret]
    const bytes = Buffer.from(secret, 'hex')
    return [secret, bytes.toString('base64'), bytes.toString('base64url')]
  }

  test('a session that expired by age or inactivity returns 401 at every call; keys swapped in the database sign for no user', async () => {
    for (const { cookie } of [aged, silent]) expect(await refusals(cookie)).toEqual(['401 session_expired'])
    for (const user of [alice, bob]) {
      expect(await refusal(user.sign(createTx(nonce + 1)))).toEqual([403, 'key_binding_mismatch'])
    }
  })

  test('keys swapped in every table sign for no user', async () => {
    const before = await backend.withDatabase(async (query) => {
      await query('alter table wallets disable trigger all')
      for (const column of ['kms_key_id', 'address']) await swap(query, 'wallets', column, 'user_id')
      for (const column of ['key_id', 'address']) await swap(query, 'sessions', column, 'user_id')
      return query('select count(*) from signings')
    })
    for (const user of [alice, bob]) {
      const [status, code] = await refusal(user.sign(createTx(nonce + 1)))
      expect(status).toBe(403)
      expect(['key_binding_mismatch', 'grant_invalid']).toContain(code)
    }
    const count = 'select count(*) from signings'
    expect(await backend.withDatabase((query) => query(count))).toEqual(before)
  })

  test('the response check detects a response that differs from /openapi.json', async () => {
    await expect(backend.call('/nowhere')).rejects.toThrow('no such call')
    await expect(backend.call('/auth/me', { method: 'DELETE', headers: { origin: APP } })).rejects.toThrow(
      'no such call',
    )
    const check = (response: Response) => backend.checkAnswer(new URL('/auth/me', backend.url), 'GET', response)
    const user = { id: '00000000-0000-4000-8000-000000000000', email: 'a@example.com', name: null }
    await check(Response.json(user))
    await expect(check(Response.json(user, { status: 418 }))).rejects.toThrow('no such status')
    await expect(check(new Response(JSON.stringify(user)))).rejects.toThrow('no such content type')
    await expect(check(Response.json({ ...user, email: undefined }))).rejects.toThrow('email')
    await expect(check(Response.json({ ...user, kmsKeyId: '00' }))).rejects.toThrow('kmsKeyId')
    const problem = { type: 'x', title: 'x', status: 401, code: 'proof_not_found', requestId: 'x', retryable: false }
    const headers = { 'content-type': 'application/problem+json' }
    await expect(check(Response.json(problem, { status: 401, headers }))).rejects.toThrow('no proof_not_found')
  })

  test('every kind of response matched /openapi.json', async () => {
    expect([...(await backend.seenAnswers())].sort()).toEqual(
      expect.arrayContaining([
        'get /auth/me 200',
        'get /auth/me 401',
        'get /auth/{provider} 302',
        'get /auth/{provider} 400',
        'get /auth/{provider}/callback 302',
        'get /health 200',
        'get /health/attestation 200',
        'get /health/ready 200',
        'get /proof/{slug} 200',
        'get /proof/{slug} 404',
        'get /wallet/me 200',
        'get /wallet/me 401',
        'get /wallet/me 404',
        'post /auth/logout 200',
        'post /auth/logout 401',
        'post /auth/logout 403',
        'post /sign/digest 200',
        'post /sign/digest 401',
        'post /sign/digest 403',
        'post /sign/digest 409',
        'post /sign/digest 422',
        'post /sign/digest 502',
        'post /sign/digest 503',
        'post /wallet/provision 200',
        'post /wallet/provision 401',
        'post /wallet/provision 403',
        'post /wallet/provision 503',
      ]),
    )
  })
})

describe('a failed start', () => {
  test('lists every fault and quotes no secret', async () => {
    const output: string[] = []
    const env = { NODE_ENV: 'production', MOCK_ATTESTATION: 'true', OIDC_GOOGLE_CLIENT_SECRET: 'canary' }
    const onLine = (line: string) => output.push(line)
    const { started } = startService({ name: 'coordinator', main: mains.coordinator, env, onLine })
    await expect(started).rejects.toThrow('The coordinator exited with code 1')
    for (const name of ['MOCK_ATTESTATION', 'DATABASE_URL', 'PUBLIC_URL', 'ALLOWED_ORIGINS', 'ENTROPY_URL']) {
      expect(output.some((line) => line.includes(`"fault":"${name}`))).toBe(true)
    }
    expect(output.join()).not.toContain('canary')
  })
})
