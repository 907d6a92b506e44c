import { fromHex, type Hex, recoverPublicKey, toAddress } from '@countersign/protocol'
import { z } from '@hono/zod-openapi'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  APP,
  type Backend,
  createTx,
  createUser,
  startBackend,
  startCoordinator,
  type TestUser,
  toDigest,
} from '../test/backend.ts'
import type { ProofPayload } from './proof/getProof.ts'
import type { WalletInfo } from './wallet/getWallet.ts'

type SignResult = { signature: Hex; slug: string }

/** Reads an answer that has to be of this status. */
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

const times = <Value>(count: number, make: (index: number) => Value) => Array.from({ length: count }, (_, i) => make(i))

/* The tests of one database go through the life of one backend, in order. */
describe.each(['pglite', 'postgres'] as const)('the backend as processes, on %s', (kind) => {
  let backend: Backend
  let alice: TestUser
  let bob: TestUser
  let nonce = 0
  /** What was answered; it must hold for ever. */
  const answered = new Map<number, SignResult>()

  async function sign(user = alice): Promise<SignResult & { nonce: number }> {
    nonce += 1
    const own = nonce
    const result = await read<SignResult>(user.sign(createTx(own)))
    if (user === alice) answered.set(own, result)
    return { ...result, nonce: own }
  }
  const getProof = (slug: string) => read<ProofPayload>(fetch(`${backend.url}/proof/${slug}`))
  async function assertNothingLost() {
    for (const [own, { signature, slug }] of answered) {
      expect(await read(alice.sign(createTx(own)))).toEqual({ signature, slug })
      expect((await getProof(slug)).kmsQuoteVerified).toBe(true)
    }
  }

  beforeAll(async () => {
    backend = await startBackend({ kind })
    alice = createUser(backend)
    bob = createUser(backend)
  })
  afterAll(() => backend?.stop())

  test('after sign-in there is a user, and a wallet at once', async () => {
    expect(await refusal(alice.get('/auth/me'))).toEqual([401, 'not_authenticated'])
    expect((await alice.signIn('alice')).origin).toBe(APP)
    await bob.signIn('bob')
    expect(await read(alice.get('/auth/me'))).toMatchObject({ email: 'alice@example.com' })
    const wallet = await read<WalletInfo>(alice.get('/wallet/me'))
    expect(wallet.address).toMatch(/^0x[0-9a-f]{40}$/)
    expect((await read<WalletInfo>(bob.get('/wallet/me'))).address).not.toBe(wallet.address)
  })

  test('50 provisions at one time, and later ones, are the one wallet', async () => {
    const wallet = await read(alice.get('/wallet/me'))
    const provisioned = await Promise.all(times(50, () => read(alice.post('/wallet/provision'))))
    for (const each of [...provisioned, await read(alice.post('/wallet/provision'))]) expect(each).toEqual(wallet)
  })

  test('a signature is the wallet’s, and its proof is there at once', async () => {
    const { address } = await read<WalletInfo>(alice.get('/wallet/me'))
    const { signature, slug, nonce: own } = await sign()
    const digest = fromHex(toDigest(createTx(own)).slice(2))
    expect(toAddress(recoverPublicKey(digest, fromHex(signature.slice(2))))).toBe(address)
    expect(await getProof(slug)).toMatchObject({
      slug,
      walletAddress: address,
      chainId: 31337,
      status: 'pending_pin',
      kmsQuoteVerified: true,
      receipt: null,
      ipfsCid: null,
    })
  })

  test('the same digest again has the same signature and slug', async () => {
    const { nonce: own, ...first } = await sign()
    expect(await read(alice.sign(createTx(own)))).toEqual(first)
  })

  test('50 identical signings at one time are one', async () => {
    nonce += 1
    const results = await Promise.all(times(50, () => read<SignResult>(alice.sign(createTx(nonce)))))
    expect(new Set(results.map((result) => JSON.stringify(result))).size).toBe(1)
    if (backend.databaseUrl === undefined) return
    const rows = await query('select id from pending_transactions where digest = $1', [
      Buffer.from(toDigest(createTx(nonce)).slice(2), 'hex'),
    ])
    expect(rows).toHaveLength(1)
  })

  test('50 different signings at one time have 50 slugs', async () => {
    const results = await Promise.all(times(50, () => sign()))
    expect(new Set(results.map(({ slug }) => slug)).size).toBe(50)
  })

  test('a digest of something else is refused, also when another user signed it', async () => {
    nonce += 1
    expect(await refusal(alice.sign(createTx(nonce), `0x${'22'.repeat(32)}`))).toEqual([422, 'digest_mismatch'])
    const theirs = await sign(bob)
    const own = await read<SignResult>(alice.sign(createTx(theirs.nonce)))
    expect(own.slug).not.toBe(theirs.slug)
    expect(own.signature).not.toBe(theirs.signature)
  })

  test('answers are as /openapi.json says', async () => {
    const { components } = JSON.parse(
      (await (await fetch(`${backend.url}/openapi.json`)).text()).replaceAll('#/components/schemas/', '#/$defs/'),
    ) as { components: { schemas: Record<string, object> } }
    const parse = async (name: string, response: Promise<Response>) =>
      z
        .fromJSONSchema({ ...components.schemas[name], $defs: components.schemas } as never)
        .parse(await (await response).json())
    const { slug } = await sign()
    await parse('SessionUser', alice.get('/auth/me'))
    await parse('WalletInfo', alice.get('/wallet/me'))
    await parse('ProofPayload', fetch(`${backend.url}/proof/${slug}`))
    await parse('Problem', fetch(`${backend.url}/proof/AAAAAAAAAAAAAAAAAAAAAA`))
    await parse('Problem', alice.sign(createTx(nonce), `0x${'22'.repeat(32)}`))
  })

  test('after logout the session is over, on its own', async () => {
    const other = createUser(backend)
    await other.signIn('alice')
    for (const secret of other.secrets) alice.secrets.add(secret)
    expect((await other.post('/auth/logout')).ok).toBe(true)
    expect((await refusal(other.get('/auth/me')))[0]).toBe(401)
    expect((await refusal(other.sign(createTx(1))))[0]).toBe(401)
    await read(alice.get('/auth/me'))
  })

  test('without the enclave nothing is signed and proofs are still told; a new one goes on', async () => {
    const { slug } = await sign()
    await backend.stopEnclave('SIGKILL')
    nonce += 1
    expect(await refusal(alice.sign(createTx(nonce)))).toEqual([503, 'enclave_unavailable'])
    expect((await getProof(slug)).slug).toBe(slug)
    await backend.startEnclave()
    await sign()
    await assertNothingLost()
  })

  test('stopped and started again: same session, proofs and signatures', async () => {
    const before = { me: await read(alice.get('/auth/me')), wallet: await read(alice.get('/wallet/me')) }
    expect(await backend.stopCoordinator('SIGTERM')).toBe(0)
    await backend.startCoordinator()
    expect({ me: await read(alice.get('/auth/me')), wallet: await read(alice.get('/wallet/me')) }).toEqual(before)
    await assertNothingLost()
    await sign()
  })

  test('killed while 20 signings wait: what was answered has its proof, and the rest can be asked again', async () => {
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

    // Without entropy nothing can be signed anew: these are the bytes from before.
    backend.satellite.setFault('down')
    await backend.startCoordinator()
    await assertNothingLost()
  })

  test.each([
    ['that is down', 'down', {}],
    ['that is slow', 'slow', { delayMs: 10_000 }],
    ['that signs wrongly', 'wrong-signature', {}],
  ] as const)('a satellite %s: nothing is signed', async (_, fault, options) => {
    backend.satellite.setFault(fault, options)
    nonce += 1
    const before = await countSigned()
    expect(await refusal(alice.sign(createTx(nonce)))).toEqual([503, 'entropy_unavailable'])
    expect(await countSigned()).toBe(before)
    // No sample is asked for a request that cannot be signed.
    const { requests } = backend.satellite
    expect(await refusal(alice.sign(createTx(nonce), `0x${'22'.repeat(32)}`))).toEqual([422, 'digest_mismatch'])
    expect(backend.satellite.requests).toBe(requests)
  })

  test('a satellite that is back: what was refused is signed', async () => {
    backend.satellite.setFault()
    const results = await Promise.all(times(23, (index) => read<SignResult>(alice.sign(createTx(nonce - index)))))
    expect(new Set(results.map(({ slug }) => slug)).size).toBe(23)
    await assertNothingLost()
  })

  async function query(text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: backend.databaseUrl })
    await client.connect()
    try {
      return (await client.query(text, values)).rows
    } finally {
      await client.end()
    }
  }

  async function countSigned(): Promise<unknown> {
    if (backend.databaseUrl === undefined) return undefined
    return (await query('select count(*) as count from pending_transactions'))[0]?.count
  }

  async function dumpTables(): Promise<string> {
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

  test('no secret is in the logs, and none in the database', async () => {
    const secrets = [...alice.secrets, ...bob.secrets]
    // A login secret and a session secret each, and those of the sign-in that was logged out.
    expect(secrets.length).toBeGreaterThanOrEqual(6)
    const logs = backend.logs()
    expect(logs).toContain('Started the coordinator')
    for (const { email } of backend.oidc.accounts) expect(logs).not.toContain(email)
    const dump = backend.databaseUrl === undefined ? '' : await dumpTables()
    if (backend.databaseUrl !== undefined) expect(dump).toContain('alice@example.com')
    for (const text of [logs, dump]) {
      expect(text).not.toContain(backend.oidc.clientSecret)
      // A JSON Web Token, which an ID token is.
      expect(text).not.toMatch(/eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+/)
      for (const secret of secrets) {
        const bytes = Buffer.from(secret, 'hex')
        for (const form of [secret, bytes.toString('base64'), bytes.toString('base64url')]) {
          expect(text).not.toContain(form)
        }
      }
    }
  })

  if (kind === 'pglite') return
  test('keys swapped in the database sign for nobody', async () => {
    const swap = (table: string, column: string, owner: string) =>
      query(
        `update ${table} set ${column} = other.${column} from ${table} as other where other.${owner} <> ${table}.${owner}`,
      )
    const before = await countSigned()
    await swap('users', 'kms_key_id', 'id')
    for (const user of [alice, bob]) {
      expect(await refusal(user.sign(createTx(nonce + 1)))).toEqual([403, 'key_binding_mismatch'])
    }

    // The same in every table, as somebody would who knows them all and owns the database.
    await query('alter table wallets disable trigger all')
    for (const column of ['kms_key_id', 'address']) await swap('wallets', column, 'user_id')
    for (const column of ['key_id', 'address']) await swap('sessions', column, 'user_id')
    for (const user of [alice, bob]) {
      const [status, code] = await refusal(user.sign(createTx(nonce + 1)))
      expect(status).toBe(403)
      expect(['key_binding_mismatch', 'grant_invalid']).toContain(code)
    }
    expect(await countSigned()).toBe(before)
  })
})

describe('start refused', () => {
  test('with every fault listed, and no secret told', async () => {
    const output: string[] = []
    const env = { NODE_ENV: 'production', MOCK_ATTESTATION: 'true', OIDC_GOOGLE_CLIENT_SECRET: 'canary' }
    await expect(startCoordinator(env, output)).rejects.toThrow('the coordinator ended')
    for (const name of ['MOCK_ATTESTATION', 'DATABASE_URL', 'PUBLIC_URL', 'ALLOWED_ORIGINS', 'ENTROPY_URL']) {
      expect(output.some((line) => line.includes(`"fault":"${name}`))).toBe(true)
    }
    expect(output.join()).not.toContain('canary')
  })
})
