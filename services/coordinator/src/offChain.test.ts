import { randomBytes } from 'node:crypto'
import { createSimulatedBeacon, simulatedRoots } from '@countersign/attestation/simulator'
import { createPolicy, hashPolicy, type Rule, toPolicyBytes } from '@countersign/policy'
import {
  type AttestAddressResponse,
  computeCommitment,
  type EndpointResponse,
  fromHex,
  type Hex,
  hashAuthorization,
  hashMessage,
  hashTypedData as hashOurTypedData,
  type Opening,
  type OwnerOpening,
  type ProofPayload,
  type TransactionPage,
  toCanonicalJson,
  toHex,
  toSessionName,
  type VaultInfo,
} from '@countersign/protocol'
import { checkReceipt, parseCar, parseReceiptCar } from '@countersign/receipt'
import { APP_ORIGIN } from '@countersign/testing/launcher'
import {
  createTx,
  createUser,
  type DrandRelay,
  readEvents,
  startDrandRelay,
  type TestUser,
  toDigest,
  waitForCompleteProofs,
} from '@countersign/testing/stack'
import { hashTypedData, recoverAddress, recoverMessageAddress } from 'viem'
import { recoverAuthorizationAddress } from 'viem/utils'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from '../../../apps/verifier/src/runCli.ts'
import { startContract } from '../../../contracts/startContract.ts'
import { createPasskey } from '../../../packages/policy/test/passkey.ts'
import { createClient } from '../../enclave/test/clientKey.ts'
import { type Backend, startBackend } from '../test/backend.ts'

type Answer = { signature: Hex; slug: string; opening: Opening }

/** 50 in every run. `OFF_CHAIN_MESSAGES=1000` is the full trial. */
const COUNT = Number(process.env.OFF_CHAIN_MESSAGES ?? 50)
const simulated = createSimulatedBeacon()
const IMPLEMENTATION: Hex = `0x${'22'.repeat(20)}`

const typedData = {
  domain: { name: 'Token', version: '1', chainId: 1, verifyingContract: `0x${'11'.repeat(20)}` as const },
  types: {
    Permit: [
      { name: 'spender', type: 'address' },
      { name: 'value', type: 'uint256' },
    ],
  },
  primaryType: 'Permit' as const,
  message: { spender: `0x${'33'.repeat(20)}` as const, value: '1000000000000000000' },
}

/* Runs real processes of one backend in order. */
describe('every kind of signature, as separate processes', () => {
  let chain: Awaited<ReturnType<typeof startContract>>['chain']
  let contract: Hex
  let backend: Backend
  let relay: DrandRelay
  let alice: TestUser
  let address: Hex
  beforeAll(async () => {
    relay = await startDrandRelay(simulated)
    const started = await startContract()
    chain = started.chain
    contract = started.address
    backend = await startBackend({
      env: { ...started.env, RECEIPTS: '2' },
      enclaveEnv: { IMPLEMENTATIONS: IMPLEMENTATION, ENTROPY_DRAND: relay.setting },
    })
    alice = createUser(backend)
    await alice.signIn('alice')
    address = ((await (await alice.get('/wallet/me')).json()) as { address: Hex }).address
  }, 120_000)
  afterAll(async () => {
    await backend?.stop()
    await chain?.stop()
    await relay?.stop()
  })

  async function post(path: string, body: unknown): Promise<Answer> {
    const response = await alice.post(path, body)
    const text = await response.text()
    expect({ status: response.status, text }).toMatchObject({ status: 200 })
    return JSON.parse(text)
  }
  const complete = async (slug: string) =>
    (await waitForCompleteProofs({ url: backend.url, slugs: [slug], timeoutMs: 90_000 }))[0] as ProofPayload
  async function getCar({ ipfsCid }: ProofPayload): Promise<Uint8Array> {
    const response = await fetch(`${backend.url}/ipfs/${ipfsCid}?format=car`)
    expect(response.status).toBe(200)
    return new Uint8Array(await response.arrayBuffer())
  }
  async function expectVerified(proof: ProofPayload, opening?: Opening) {
    const { bytes, collateral, blocks } = parseReceiptCar(await getCar(proof))
    const { steps, verdict } = await checkReceipt(bytes, collateral as Uint8Array, {
      roots: simulatedRoots(),
      mockEntropyKeys: [backend.satellite.publicKey],
      cid: proof.ipfsCid ?? '',
      blocks,
      ...(opening && { opening: toCanonicalJson(opening) }),
    })
    expect(steps.filter(({ status }) => status === 'fail')).toEqual([])
    expect(verdict).toBe('mock')
    const events = await readEvents({ url: chain.url, contract })
    expect(events.filter(({ txHash }) => txHash === proof.txHash)).toEqual([
      { wallet: proof.walletAddress, txHash: proof.txHash, ipfsCid: proof.ipfsCid },
    ])
  }

  test('a message gets a standard signature, an opening, and a proof that reveals neither', async () => {
    const message: Hex = `0x${Buffer.from('Sign in to example.org').toString('hex')}`
    const { signature, slug, opening } = await post('/sign/message', { message })
    expect((await recoverMessageAddress({ message: { raw: message }, signature })).toLowerCase()).toBe(address)
    const proof = await complete(slug)
    const commitment: Hex = `0x${toHex(computeCommitment(opening))}`
    expect(proof).toMatchObject({ kind: 'off-chain', chainId: 0, txHash: commitment, walletAddress: address })
    expect(JSON.stringify(proof)).not.toContain(signature.slice(2))
    await expectVerified(proof, opening)
    await expectVerified(proof)
  }, 120_000)

  test('typed data', async () => {
    const { signature, slug, opening } = await post('/sign/typed-data', typedData)
    const hash = hashTypedData({ ...typedData, message: { ...typedData.message, value: 10n ** 18n } })
    expect((await recoverAddress({ hash, signature })).toLowerCase()).toBe(address)
    const proof = await complete(slug)
    expect(proof).toMatchObject({ kind: 'off-chain', chainId: 0 })
    await expectVerified(proof, opening)
  }, 120_000)

  test('an authorization for listed code returns the same signature twice, and other code is rejected', async () => {
    const authorization = { chainId: chain.chainId, address: IMPLEMENTATION, nonce: 4 }
    const first = await post('/sign/authorization', authorization)
    const authority = await recoverAuthorizationAddress({ authorization, signature: first.signature })
    expect(authority.toLowerCase()).toBe(address)
    expect(await post('/sign/authorization', authorization)).toEqual(first)
    const proof = await complete(first.slug)
    expect(proof).toMatchObject({ kind: 'authorization', chainId: chain.chainId })
    await expectVerified(proof)
    const response = await alice.post('/sign/authorization', { ...authorization, address: `0x${'44'.repeat(20)}` })
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([
      422,
      'authorization_not_allowed',
    ])
  }, 120_000)

  test('with RECEIPTS=2 a transaction has a version 2 receipt and the same proof members', async () => {
    const { slug } = (await (await alice.sign(createTx(0))).json()) as Answer
    const proof = await complete(slug)
    expect(proof.receipt?.version).toBe('countersign-attestation/2')
    expect('kind' in proof).toBe(false)
    await expectVerified(proof)
  }, 120_000)

  test('a vault pays what its rules allow, needs a passkey for more and for messages, is attested, and every proof verifies', async () => {
    const passkey = createPasskey({ seed: 1, rpId: 'vault.example' })
    const rule = {
      kind: 'transaction',
      chainIds: [31337],
      to: 'any',
      maxFeeWei: '100000',
      approvals: 0,
      approvers: 'any',
    } as const
    const policy = createPolicy({
      version: 1,
      log: null,
      approvers: [passkey.approver],
      rules: [
        { ...rule, maxValueWei: '1' },
        { ...rule, maxValueWei: '9', approvals: 1 },
        { kind: 'message', approvals: 1, approvers: 'any' },
      ],
    })
    const response = await alice.post('/vaults', { policy })
    expect(response.status).toBe(201)
    const vault = (await response.json()) as VaultInfo
    expect(vault).toMatchObject({ policy, policyHash: toHex(hashPolicy(policy)) })
    expect(vault.address).not.toBe(address)
    const block = await fetch(`${backend.url}/ipfs/${vault.policyCid}?format=raw`)
    expect(new Uint8Array(await block.arrayBuffer())).toEqual(toPolicyBytes(policy))

    const { address: wallet } = vault
    const findRule = (kind: Rule['kind'], approvals: number) =>
      policy.rules.findIndex((one) => one.kind === kind && one.approvals === approvals)
    const [free, costly] = [findRule('transaction', 0), findRule('transaction', 1)]
    const approve = (kind: 'transaction' | 'message', digest: Uint8Array, expiresMs = Date.now() + 3_600_000) => {
      const request = { vaultAddress: wallet, policyHash: hashPolicy(policy), rule: findRule(kind, 1), kind, digest }
      return [passkey.approve({ ...request, expiresMs }, 0)]
    }
    const pay = (nonce: number, value: string, rule = costly) => {
      const txMetadata = createTx(nonce, { value })
      return { digest: toDigest(txMetadata), txMetadata, wallet, rule }
    }
    const small = await post('/sign/digest', pay(0, '1', free))
    const { digest, ...large } = pay(1, '9')
    const approvals = approve('transaction', fromHex(digest.slice(2)))
    const approved = await post('/sign/digest', { digest, ...large, approvals })
    expect((await recoverAddress({ hash: digest, signature: approved.signature })).toLowerCase()).toBe(wallet)
    const message = '0x6869' as const
    const said = await post('/sign/message', {
      message,
      wallet,
      rule: findRule('message', 1),
      approvals: approve('message', hashMessage(message)),
    })
    const attested = await post(`/vaults/${wallet}/attest`, {})
    expect(await post(`/vaults/${wallet}/attest`, {})).toEqual(attested)
    const own = await post('/wallet/attest', {})
    const openings = [attested, own].map((answer) => (answer as unknown as AttestAddressResponse).owner)
    const [ofVault, ofOwn] = openings as [OwnerOpening, OwnerOpening]
    expect(ofVault.identity).toEqual(ofOwn.identity)
    expect(ofVault.identity).toMatchObject({ subject: 'alice' })
    expect(ofVault.salt).not.toBe(ofOwn.salt)

    const next = pay(2, '9')
    for (const [body, code] of [
      [{ ...next, approvals }, 'approval_invalid'],
      [{ ...next, approvals: approve('transaction', fromHex(next.digest.slice(2)), 1) }, 'approval_invalid'],
      [{ ...next, approvals: approve('message', fromHex(next.digest.slice(2))) }, 'approval_invalid'],
      [next, 'approvals_missing'],
      [pay(2, '10'), 'policy_refused'],
      [{ ...next, rule: free, approvals: approve('transaction', fromHex(next.digest.slice(2))) }, 'policy_refused'],
      [{ ...next, rule: policy.rules.length }, 'policy_refused'],
    ] as const) {
      const refused = await alice.post('/sign/digest', body)
      expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([403, code])
    }

    const proofs = [await complete(small.slug), await complete(approved.slug), await complete(attested.slug)]
    for (const proof of proofs) {
      expect(proof).toMatchObject({ walletAddress: wallet, receipt: { policy: vault.policyCid } })
      await expectVerified(proof)
    }
    expect(proofs.map(({ kind, chainId }) => kind ?? chainId)).toEqual([31337, 31337, 'address'])
    expect(proofs.map(({ receipt }) => receipt && 'approvals' in receipt)).toEqual([false, true, false])
    const off = await complete(said.slug)
    await expectVerified(off, said.opening)
    expect(off.receipt).not.toHaveProperty('approvals')
    const ofWallet = await complete(own.slug)
    expect(ofWallet).toMatchObject({ kind: 'address', chainId: 0, walletAddress: address })
    await expectVerified(ofWallet)
    const page = (await (await alice.get('/wallet/transactions')).json()) as TransactionPage
    expect(page.transactions.filter(({ walletAddress }) => walletAddress === wallet)).toHaveLength(4)
  }, 180_000)

  test('the opening of an address’s owner comes back after the database is lost', async () => {
    const attest = async (user: TestUser) => {
      const response = await user.post('/wallet/attest', {})
      expect(response.status).toBe(200)
      return (await response.json()) as AttestAddressResponse
    }
    const before = await attest(alice)
    const name = `lost_${randomBytes(8).toString('hex')}`
    await backend.withDatabase((query) => query(`create database ${name}`))
    const empty = new URL(backend.databaseUrl)
    empty.pathname = `/${name}`
    const second = await backend.startSecond({ DATABASE_URL: empty.href, WORKER: 'off' })
    try {
      const again = createUser(second)
      await again.signIn('alice')
      const after = await attest(again)
      expect(after.owner).toEqual(before.owner)
      expect(after.slug).not.toBe(before.slug)
    } finally {
      await second.stop()
      await backend.withDatabase((query) => query(`drop database ${name} with (force)`))
    }
  }, 120_000)

  test('a session with a browser key signs only what the key has stamped, also after a sign-out and a restored database', async () => {
    const [client, thief] = [createClient(), createClient()]
    const [bob, mallory] = [createUser(backend), createUser(backend)]
    await bob.signIn('bob', `?client_key=${client.clientKey}`)
    // The public key is no secret: Mallory opens a session with it.
    await mallory.signIn('carol', `?client_key=${client.clientKey}`)
    const read = async <Body>(response: Promise<Response>) => (await (await response).json()) as Body
    const { address } = await read<{ address: Hex }>(bob.get('/wallet/me'))
    const { time, ...info } = await read<EndpointResponse<'GET /auth/session'>>(bob.get('/auth/session'))
    expect(info).toMatchObject({ kind: 'bound', clientKey: client.clientKey })

    const txMetadata = createTx(900)
    const message = '0x626f62' as const
    const authorization = { chainId: chain.chainId, address: IMPLEMENTATION, nonce: 900 }
    const calls = [
      [
        'transaction',
        '/sign/digest',
        { digest: toDigest(txMetadata), txMetadata },
        fromHex(toDigest(txMetadata).slice(2)),
      ],
      ['message', '/sign/message', { message }, hashMessage(message)],
      ['typed-data', '/sign/typed-data', typedData, hashOurTypedData(typedData)],
      ['authorization', '/sign/authorization', authorization, hashAuthorization(authorization)],
      ['address', '/wallet/attest', {}, null],
    ] as const
    type Call = (typeof calls)[number]
    const toStamp = ([kind, , , digest]: Call, by = client, issuedMs = Date.parse(time)) =>
      by.stamp({ address, vault: null, kind, digest, issuedMs })
    const codeOf = async (response: Promise<Response>) => {
      const { code, slug } = await read<{ code?: string; slug?: string }>(response)
      return code ?? (slug && 'signed')
    }
    for (const call of calls) {
      const [, path, body] = call
      const trySign = (stamp: object | undefined, by = bob) =>
        codeOf(by.post(path, { ...body, ...(stamp && { stamp }) }))
      expect(await trySign(undefined)).toBe('stamp_missing')
      expect(await trySign(toStamp(call, thief))).toBe('stamp_invalid')
      expect(await trySign(toStamp(call, client, Date.parse(time) - 400_000))).toBe('stamp_time')
      expect(await trySign(toStamp(call, client, Date.now() + 120_000))).toBe('stamp_time')
      expect(await trySign(toStamp(call), mallory)).toBe('stamp_invalid')
      // Alice's address was attested before, and has one statement.
      if (call[0] !== 'address') expect(await trySign(toStamp(call), alice)).toBe('stamp_invalid')
    }
    const [transaction] = calls
    const signed = await read<Answer>(bob.post('/sign/digest', { ...transaction[2], stamp: toStamp(transaction) }))
    expect(await read<Answer>(bob.post('/sign/digest', { ...transaction[2], stamp: toStamp(transaction) }))).toEqual(
      signed,
    )
    const proof = await complete(signed.slug)
    const car = Buffer.from(await getCar(proof)).toString('latin1')
    expect(car).toContain(`"session":"${toSessionName({ clientKey: client.clientKey, address })}"`)
    await expectVerified(proof)

    // The operator keeps the row of the session, and puts it back after the sign-out.
    const bobs = `user_id = (select id from users where email = 'bob@example.com')`
    const { cookie } = bob
    await backend.withDatabase((query) => query(`create table kept as select * from sessions where ${bobs}`))
    expect((await bob.post('/auth/logout')).status).toBe(200)
    const asBob = (path: string, body: object) => {
      const headers = { cookie, origin: APP_ORIGIN, 'content-type': 'application/json' }
      return backend.call(path, { method: 'POST', headers, body: JSON.stringify(body) })
    }
    expect(await codeOf(asBob('/sign/message', { message }))).toBe('not_authenticated')
    const restore = (change = '') =>
      backend.withDatabase(async (query) => {
        await query(`delete from sessions where ${bobs}`)
        await query('insert into sessions select * from kept')
        if (change !== '') await query(`update sessions set ${change} where ${bobs}`)
      })
    for (const change of ['', 'client_key = null', `client_key = decode('${thief.clientKey}', 'hex')`]) {
      await restore(change)
      for (const call of calls.slice(1)) {
        const [, path, body] = call
        expect(await codeOf(asBob(path, body))).toBe('stamp_missing')
        expect(await codeOf(asBob(path, { ...body, stamp: toStamp(call, thief) }))).toBe('stamp_invalid')
      }
    }
    await backend.withDatabase(async (query) => {
      await query('drop table kept')
      await query(`delete from sessions where ${bobs}`)
    })
  }, 180_000)

  test(`nothing of ${COUNT} random messages is in the database, blocks, calldata or logs; after kills, all proofs complete`, async () => {
    const messages = Array.from({ length: COUNT }, () => `0x${randomBytes(48).toString('hex')}` as const)
    const answers: Answer[] = []
    for (let start = 0; start < COUNT; start += 50) {
      const part = messages.slice(start, start + 50)
      answers.push(...(await Promise.all(part.map((message) => post('/sign/message', { message })))))
    }
    await backend.stopCoordinator('SIGKILL')
    // Changes the entropy source for the next test. Earlier signatures are unaffected.
    await backend.startCoordinator({ ENTROPY_SOURCE: 'drand', ENTROPY_URL: relay.url, ENTROPY_DRAND: relay.setting })
    const slugs = answers.map(({ slug }) => slug)
    const proofs = await waitForCompleteProofs({ url: backend.url, slugs, timeoutMs: 60_000 + 1_000 * COUNT })
    const blocks = new Map<string, string>()
    for (const proof of proofs) {
      for (const [cid, block] of parseCar(await getCar(proof)).blocks)
        blocks.set(cid, Buffer.from(block).toString('utf8'))
    }
    const places = {
      database: await backend.withDatabase(async (query) => {
        const tables = await query(`select format('%I.%I', table_schema, table_name) as name
          from information_schema.tables where table_schema in ('public', 'pgboss') and table_type = 'BASE TABLE'`)
        const lines: string[] = []
        for (const { name } of tables) {
          for (const { line } of await query(`select t::text as line from ${name} as t`)) lines.push(String(line))
        }
        return lines.join('\n')
      }),
      blocks: [...blocks.values()].join('\n'),
      calldata: await readCalldata(chain.url),
    }
    // Searches for public values first, to prove that the search works.
    const commitments = proofs.map(({ txHash }) => txHash.slice(2))
    for (const [place, text] of Object.entries(places)) {
      expect([place, commitments.filter((one) => !text.includes(one))]).toEqual([place, []])
    }
    const haystack = [...Object.values(places), JSON.stringify(proofs), backend.logs()].join('\n')
    const lowered = haystack.toLowerCase()
    const found: string[] = []
    for (const [index, { signature, opening }] of answers.entries()) {
      const { content, signature: half } = opening as {
        content: { salt: string; digest: Hex }
        signature: { salt: string }
      }
      const message = (messages[index] as Hex).slice(2)
      const parts = [message, content.digest.slice(2), signature.slice(2, 66), signature.slice(66, 130)]
      for (const part of [...parts, content.salt, half.salt]) {
        if (lowered.includes(part)) found.push(part)
        if (haystack.includes(Buffer.from(part, 'hex').toString('base64').slice(0, 40))) found.push(part)
      }
    }
    expect(found).toEqual([])
  }, 600_000)

  test('with drand each signature has a round of the beacon, and the command line explains it', async () => {
    const [payment, message] = await Promise.all([
      alice.sign(createTx(1)).then(async (response) => (await response.json()) as Answer),
      post('/sign/message', { message: '0x6869' }),
    ])
    const proofs = [await complete(payment.slug), await complete(message.slug)]
    const rounds = proofs.map(({ receipt }) => receipt?.entropy)
    expect(rounds).toEqual(Array(2).fill(expect.objectContaining({ kind: 'drand', publicKey: simulated.beacon.key })))
    expect(relay.requests).toBeGreaterThan(0)
    const deps = { fetch: globalThis.fetch, timeoutMs: 10_000, now: () => new Date(), isColored: false }
    for (const { slug } of proofs) {
      const args = ['verify', `${backend.url}/proof/${slug}`, '--rpc', chain.url, '--contract', contract]
      const { exitCode, stdout, stderr } = await runCli(deps, args)
      // Simulated: nothing failed, and nothing is proven about hardware.
      expect({ exitCode, stderr, fails: stdout.match(/✗.*/g) }).toEqual({ exitCode: 3, stderr: '', fails: null })
      expect(stdout.replace(/\s+/g, ' ')).toContain('a public beacon, shared by all signatures of its round')
    }
  }, 120_000)
})

/** The calldata of every transaction on the chain. */
async function readCalldata(url: string): Promise<string> {
  const call = async (method: string, params: unknown[]) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    return ((await response.json()) as { result: unknown }).result
  }
  const height = Number(await call('eth_blockNumber', []))
  const inputs: string[] = []
  for (let number = 0; number <= height; number += 1) {
    const block = (await call('eth_getBlockByNumber', [`0x${number.toString(16)}`, true])) as {
      transactions: { input: string }[]
    }
    inputs.push(...block.transactions.map(({ input }) => input))
  }
  return inputs.join('\n')
}
