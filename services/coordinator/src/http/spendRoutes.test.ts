import { hash } from 'node:crypto'
import { createPolicy, hashPolicy, type SpendRule, toStateHex } from '@countersign/policy'
import {
  type Approval,
  type ApprovalKind,
  fromHex,
  type Hex,
  hashTypedData,
  type Problem,
  toEventHash,
  toHex,
  toPrefixedHex,
  type VaultBudgetInfo,
  type VaultInfo,
} from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createAgent } from '../../../../packages/policy/test/agentKey.ts'
import { createPasskey } from '../../../../packages/policy/test/passkey.ts'
import { createTestApp, scheduleAtOnce, signed, toDigest, txMetadata } from '../../test/http/testApp.ts'
import { CoordinatorError } from '../errors.ts'

const { chainId } = txMetadata
const token: Hex = `0x${'70'.repeat(20)}`
const origin = 'log.example/1'
const passkey = createPasskey({ seed: 1, rpId: 'vault.example' })
const [agent, other] = [createAgent(9), createAgent(8)]
const keys = [agent.approver, other.approver]
const spend: SpendRule = {
  kind: 'spend',
  chainIds: [chainId],
  payees: 'any',
  forms: ['coin', 'eip3009'],
  approvals: 1,
  approvers: [],
  session: false,
}
const approvers = [passkey.approver, ...keys]
const log = { origin, witnesses: ['11'.repeat(32), '22'.repeat(32), '33'.repeat(32)], quorum: 2 }
/** Two agents with separate rules, one that needs a session, one that a passkey approves, and payments of the owner. */
const policy = createPolicy({
  version: 1,
  log,
  approvers,
  budgets: [
    { chainId, token: null, limit: '5000000000000000', periodS: 86_400 },
    { chainId, token, limit: '1000', periodS: 0 },
  ],
  rules: [
    { ...spend, approvers: [1] },
    { ...spend, approvers: [2] },
    { ...spend, approvers: [1], session: true },
    { ...spend, approvers: [0] },
    {
      kind: 'transaction',
      chainIds: [chainId],
      to: 'any',
      maxValueWei: '9',
      maxFeeWei: '9',
      approvals: 1,
      approvers: [0],
    },
  ],
})
const indexOf = (key: { publicKey: string }) =>
  policy.approvers.findIndex(({ publicKey }) => publicKey === key.publicKey)
const [byPasskey, byAgent, byOther] = approvers.map(indexOf) as [number, number, number]
const findRule = (approver: number, session = false) =>
  policy.rules.findIndex((rule) => rule.kind === 'spend' && rule.approvers[0] === approver && rule.session === session)
const rule = findRule(byAgent)
const ownerRule = policy.rules.findIndex(({ kind }) => kind === 'transaction')

const toTransaction = (changes: Partial<typeof txMetadata> = {}) => {
  const metadata = { ...txMetadata, ...changes }
  return { kind: 'transaction', digest: toDigest(metadata), txMetadata: metadata } as const
}

async function setUp(changes: Parameters<typeof createTestApp>[0] = {}) {
  const app = createTestApp({ ...changes, deps: { schedule: scheduleAtOnce, ...changes.deps } })
  const { clock } = app
  const user = app.browser()
  await user.signIn()
  const created = (await (await user.post('/vaults', { policy })).json()) as VaultInfo
  const { address } = created
  type Changes = { kind?: ApprovalKind; rule?: number; vaultAddress?: Hex; policyHash?: Uint8Array; expiresMs?: number }
  const toRequest = (digest: Uint8Array, given: Changes) => ({
    vaultAddress: address,
    policyHash: hashPolicy(policy),
    rule,
    kind: 'transaction' as const,
    digest,
    expiresMs: clock.now() + 60_000,
    ...given,
  })
  const approve = (digest: Hex, given: Changes = {}, [by, index] = [agent, byAgent]) =>
    by.approve(toRequest(fromHex(digest.slice(2)), given), index)
  const approveByPasskey = (digest: Hex, given: Changes = {}) =>
    passkey.approve(toRequest(fromHex(digest.slice(2)), given), byPasskey)
  const post = (path: string, body: unknown, address?: string) =>
    app.request(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      ...(address && { address }),
    })
  const pay = (body: object, at: string = address) => post(`/vaults/${at}/sign`, body)
  /** A payment that the agent has approved. */
  const toPayment = (changes: Partial<typeof txMetadata> = {}) => {
    const transaction = toTransaction(changes)
    return { ...transaction, rule, approvals: [approve(transaction.digest)] }
  }
  return { ...app, user, created, address, approve, approveByPasskey, post, pay, toPayment }
}

async function readProblem(response: Response) {
  const { code, detail } = (await response.json()) as Problem
  return { code, detail, retryAfter: response.headers.get('retry-after') }
}

describe('POST /vaults/{address}/sign', () => {
  test('signs a transaction without a session, in the name of the vault’s owner', async () => {
    const { pay, toPayment, signings, store, address } = await setUp()
    const payment = toPayment()
    const response = await pay(payment)
    expect([response.status, await response.json()]).toEqual([200, signed])
    const [user] = store.rows.users.values()
    const owner = hash('sha256', `${user?.issuer}\0${user?.subject}`, 'hex')
    expect(signings).toMatchObject([
      { owner, address, content: { digest: payment.digest }, vault: { rule, approvals: payment.approvals } },
    ])
    expect(signings[0]).not.toHaveProperty('sid')
    expect(signings[0]).not.toHaveProperty('grant')
  })

  test('signs typed data and returns its opening', async () => {
    const { pay, approve, signings, address, clock } = await setUp()
    const member = (name: string, type: string) => ({ name, type })
    const content = {
      domain: { name: 'USD', version: '2', chainId, verifyingContract: token },
      types: {
        TransferWithAuthorization: [
          member('from', 'address'),
          member('to', 'address'),
          member('value', 'uint256'),
          member('validAfter', 'uint256'),
          member('validBefore', 'uint256'),
          member('nonce', 'bytes32'),
        ],
      },
      primaryType: 'TransferWithAuthorization',
      message: {
        from: address,
        to: `0x${'a1'.repeat(20)}`,
        value: '1000',
        validAfter: '0',
        validBefore: String(Math.floor(clock.now() / 1000) + 600),
        nonce: `0x${'5a'.repeat(32)}`,
      },
    }
    const digest = toPrefixedHex(hashTypedData(content))
    const payment = { kind: 'typed-data', ...content, rule, approvals: [approve(digest, { kind: 'typed-data' })] }
    const response = await pay(payment)
    expect(await response.json()).toMatchObject({ ...signed, opening: { content: { digest, content } } })
    expect(signings).toMatchObject([{ content: { kind: 'typed-data', digest } }])
    const long = {
      ...payment,
      message: { ...content.message, validBefore: String(Math.floor(clock.now() / 1000) + 4000) },
    }
    const approved = toPrefixedHex(hashTypedData({ ...content, message: long.message }))
    const refused = await pay({ ...long, approvals: [approve(approved, { kind: 'typed-data' })] })
    expect(await readProblem(refused)).toMatchObject({ code: 'policy_refused' })
    expect(signings).toHaveLength(1)
  })

  test('signs with a passkey’s approval if the rule lists the passkey', async () => {
    const { pay, approveByPasskey, signings } = await setUp()
    const transaction = toTransaction()
    const asked = findRule(byPasskey)
    const approvals = [approveByPasskey(transaction.digest, { rule: asked })]
    expect((await pay({ ...transaction, rule: asked, approvals })).status).toBe(200)
    expect(signings).toHaveLength(1)
  })

  type SetUp = Awaited<ReturnType<typeof setUp>>
  const { digest } = toTransaction()
  const UNKNOWN: Hex = `0x${'11'.repeat(20)}`
  const wrong: [string, (given: SetUp) => { rule?: number; approvals: readonly Approval[]; at?: string }][] = [
    ['no approval', () => ({ approvals: [] })],
    ['an unknown vault', ({ approve }) => ({ approvals: [approve(digest, { vaultAddress: UNKNOWN })], at: UNKNOWN })],
    [
      'the owner’s own wallet',
      ({ approve, store }) => ({
        approvals: [approve(digest)],
        at: [...store.rows.wallets.values()][0]?.address ?? '',
      }),
    ],
    ['an approval for another vault', ({ approve }) => ({ approvals: [approve(digest, { vaultAddress: UNKNOWN })] })],
    [
      'an approval for another policy',
      ({ approve }) => ({ approvals: [approve(digest, { policyHash: new Uint8Array(32) })] }),
    ],
    [
      'an approval for another rule',
      ({ approve }) => ({ approvals: [approve(digest, { rule: findRule(byAgent, true) })] }),
    ],
    ['an approval for another kind', ({ approve }) => ({ approvals: [approve(digest, { kind: 'typed-data' })] })],
    [
      'an approval for another amount',
      ({ approve }) => ({ approvals: [approve(toTransaction({ value: '1' }).digest)] }),
    ],
    [
      'an approval for another chain',
      ({ approve }) => ({ approvals: [approve(toTransaction({ chainId: 1 }).digest)] }),
    ],
    ['an expired approval', ({ approve, clock }) => ({ approvals: [approve(digest, { expiresMs: clock.now() })] })],
    [
      'an approval for too long',
      ({ approve, clock }) => ({ approvals: [approve(digest, { expiresMs: clock.now() + 600_001 })] }),
    ],
    ['an agent of another rule', ({ approve }) => ({ approvals: [approve(digest, {}, [other, byOther])] })],
    ['a key in the name of another', ({ approve }) => ({ approvals: [approve(digest, {}, [other, byAgent])] })],
    ['a passkey for the agent’s rule', ({ approveByPasskey }) => ({ approvals: [approveByPasskey(digest)] })],
    [
      'a key for the passkey’s rule',
      ({ approve }) => ({ rule: findRule(byPasskey), approvals: [approve(digest, { rule: findRule(byPasskey) })] }),
    ],
    [
      'a rule that needs a session',
      ({ approve }) => ({
        rule: findRule(byAgent, true),
        approvals: [approve(digest, { rule: findRule(byAgent, true) })],
      }),
    ],
    [
      'a rule of another kind',
      ({ approveByPasskey }) => ({ rule: ownerRule, approvals: [approveByPasskey(digest, { rule: ownerRule })] }),
    ],
    ['a rule that the policy lacks', ({ approve }) => ({ rule: 99, approvals: [approve(digest, { rule: 99 })] })],
  ]
  test.each(wrong)('%s: the same answer, nothing signed, and no webhook', async (_, toUse) => {
    const given = await setUp({
      config: { rateLimits: { sign: { count: 9, seconds: 60 }, provision: 'off', auth: 'off', proof: 'off' } },
    })
    const { at, ...use } = toUse(given)
    const response = await given.pay({ ...toTransaction(), rule, ...use }, at)
    const expected = {
      code: 'approval_invalid',
      detail: 'no such vault or rule without a session, or the approvals are not valid for it',
    }
    expect([response.status, response.headers.get('ratelimit-remaining')]).toEqual([403, '8'])
    expect(await readProblem(response)).toMatchObject(expected)
    expect([given.signings, given.warnings]).toEqual([[], []])
  })

  test('a vault that is not pinned gets the same answer', async () => {
    const { pay, toPayment, store, address } = await setUp()
    const row = store.rows.vaults.get(address)
    if (row !== undefined) store.rows.vaults.set(address, { ...row, isPinned: false })
    expect(await readProblem(await pay(toPayment()))).toMatchObject({ code: 'approval_invalid' })
  })

  test.each([
    ['without a rule', { rule: undefined }, 'invalid_request'],
    ['without approvals', { approvals: undefined }, 'invalid_request'],
    ['with a stamp', { stamp: { issuedMs: 1, signature: '77'.repeat(64) } }, 'invalid_request'],
    ['with a wallet', { wallet: `0x${'11'.repeat(20)}` }, 'invalid_request'],
    ['of a message', { kind: 'message', message: '0x00' }, 'invalid_request'],
    ['of no kind', { kind: undefined }, 'invalid_request'],
    ['with a short digest', { digest: '0x12' }, 'invalid_digest'],
    ['with another digest', { digest: `0x${'12'.repeat(32)}` }, 'digest_mismatch'],
    ['with a negative value', { txMetadata: { ...txMetadata, value: '-1' } }, 'invalid_tx_metadata'],
    [
      'of typed data without a domain',
      { kind: 'typed-data', digest: undefined, txMetadata: undefined },
      'invalid_typed_data',
    ],
    ['of 5 KiB', { txMetadata: { ...txMetadata, data: `0x${'00'.repeat(2_560)}` } }, 'body_too_large'],
  ])('rejects a body %s', async (_, change, code) => {
    const { pay, toPayment, signings } = await setUp()
    expect(await readProblem(await pay({ ...toPayment(), ...change }))).toMatchObject({ code })
    expect(signings).toEqual([])
  })

  test('rejects an address with a wrong checksum, and a foreign page with a cookie', async () => {
    const { pay, toPayment, user, address } = await setUp()
    const mistyped = `0x${address.slice(2).toUpperCase()}`.replace(/[A-F]/, (digit) => digit.toLowerCase())
    expect(await readProblem(await pay(toPayment(), mistyped))).toMatchObject({ code: 'invalid_request' })
    const foreign = await user.post(`/vaults/${address}/sign`, toPayment(), { origin: 'https://evil.example' })
    expect(await readProblem(foreign)).toMatchObject({ code: 'origin_not_allowed' })
  })

  test('explains a refusal by the rule to the agent, and reports it by webhook', async () => {
    const { pay, toPayment, signings, warnings } = await setUp()
    const refused = await pay(toPayment({ data: '0x12345678' }))
    expect(await refused.json()).toMatchObject({
      code: 'policy_refused',
      refusal: { rules: [{ rule, reasons: [{ code: 'form_not_allowed' }] }] },
    })
    expect(signings).toEqual([])
    expect(warnings).toMatchObject([{ type: 'vault.refused', data: { code: 'policy_refused' } }])
  })

  test('rejects a chain that the operator does not allow', async () => {
    const { pay, toPayment } = await setUp({ config: { allowedChainIds: [chainId] } })
    expect(await readProblem(await pay(toPayment({ chainId: 1 })))).toMatchObject({ code: 'chain_not_allowed' })
  })

  test('returns the earlier signature of the same transaction, but only with valid approvals', async () => {
    const { pay, toPayment, approve, signings, store, address } = await setUp()
    const payment = toPayment()
    const walletId = store.rows.vaults.get(address)?.id ?? ''
    const earlier = {
      walletId,
      digest: payment.digest,
      signature: `0x${'77'.repeat(65)}` as const,
      slug: 'earlierearlierearlierQ',
    }
    store.rows.signed.set(`${walletId}/${payment.digest}`, earlier)
    const { signature, slug } = earlier
    expect(await (await pay(payment)).json()).toEqual({ signature, slug })
    const stale = { ...payment, approvals: [approve(payment.digest, { expiresMs: 0 })] }
    expect(await readProblem(await pay(stale))).toMatchObject({ code: 'approval_invalid' })
    expect(signings).toEqual([])
  })

  test('names the budget and what is left above a limit', async () => {
    const sign = () =>
      Promise.reject(
        new CoordinatorError('budget_exceeded', '', { details: 'budgets[0]', exceeded: { budget: 0, left: '12' } }),
      )
    const { pay, toPayment, warnings, user, address } = await setUp({ deps: { sign } })
    const response = await pay(toPayment())
    expect([response.status, await response.json()]).toMatchObject([
      403,
      { code: 'budget_exceeded', budget: 0, left: '12', retryable: false },
    ])
    const { kind: _, ...payment } = toPayment()
    const bySession = await user.post('/sign/digest', { ...payment, wallet: address })
    expect(await bySession.json()).toMatchObject({ code: 'budget_exceeded', budget: 0, left: '12' })
    expect(warnings).toMatchObject(Array(2).fill({ data: { code: 'budget_exceeded' } }))
  })

  test('counts into the quota of the owner', async () => {
    const { pay, toPayment, store, clock, address } = await setUp({ config: { signQuotaPerDay: 1 } })
    const walletId = store.rows.vaults.get(address)?.id ?? ''
    store.rows.signed.set('x', { walletId, digest: null, signature: null, slug: 'x' })
    store.rows.proofs.set('x', { createdAt: clock.now() } as never)
    expect(await readProblem(await pay(toPayment()))).toMatchObject({ code: 'quota_spent', retryAfter: '86400' })
  })

  test('limits callers by address, and a vault by its valid approvals only', async () => {
    const rateLimits = { sign: { count: 3, seconds: 60 }, provision: 'off', auth: 'off', proof: 'off' } as const
    const { post, toPayment, address } = await setUp({ config: { rateLimits } })
    const path = `/vaults/${address}/sign`
    const codes = async (from: string, body: object) => {
      const response = await post(path, body, from)
      return response.status === 200 ? 'signed' : (await readProblem(response)).code
    }
    const bad = { ...toPayment(), approvals: [] }
    for (let times = 0; times < 3; times++) expect(await codes('198.51.100.1', bad)).toBe('approval_invalid')
    expect(await codes('198.51.100.1', toPayment())).toBe('rate_limited')
    for (let times = 0; times < 3; times++) expect(await codes(`198.51.100.${2 + times}`, toPayment())).toBe('signed')
    expect(await codes('198.51.100.9', toPayment())).toBe('rate_limited')
  })

  test('a session with approvals pays by rules of both kinds on its own routes', async () => {
    const { user, approve, address, signings } = await setUp()
    const { kind: _, ...transaction } = toTransaction()
    for (const asked of [rule, findRule(byAgent, true)]) {
      const approvals = [approve(transaction.digest, { rule: asked })]
      const body = { ...transaction, wallet: address, rule: asked, approvals }
      expect((await user.post('/sign/digest', body)).status).toBe(200)
    }
    expect(signings).toMatchObject([{ grant: 'grant-1' }, { grant: 'grant-1' }])
  })
})

describe('GET /vaults/{address}/budget', () => {
  const NOW_S = 1_781_524_800
  const DAY = Math.floor(NOW_S / 86_400)
  const proofOf = (counters: readonly { window: number; spent: bigint }[], revoked = 0) => ({
    row: 3,
    state: toStateHex({ keyId: '1d'.repeat(16), random: '5a'.repeat(16), sequence: 7, revoked, counters }),
    path: ['aa'.repeat(32)],
    entry: '04'.repeat(57),
    index: 9,
    entryPath: [],
    checkpoint: 'a note',
  })
  async function read(proof: VaultBudgetInfo['proof'] | undefined, deps = {}) {
    const asked: object[] = []
    const findState = async (parameters: object) => {
      asked.push(parameters)
      return proof ?? undefined
    }
    const logService = { findMissing: () => [], isOpen: () => true, findState }
    const app = await setUp({ deps: { logService, clock: { now: () => NOW_S * 1000 }, ...deps } })
    return { ...app, asked, response: await app.user.get(`/vaults/${app.address}/budget`) }
  }
  const coin = (policy.budgets ?? []).findIndex((budget) => budget.token === null)
  const sort = <Item>(ofCoin: Item, ofToken: Item) => (coin === 0 ? [ofCoin, ofToken] : [ofToken, ofCoin])

  test('is all zero before the first change', async () => {
    const { response, asked, store, address } = await read(undefined)
    expect(await response.json()).toEqual({
      time: NOW_S,
      sequence: 0,
      budgets: sort({ window: 0, spent: '0', left: '5000000000000000' }, { window: 0, spent: '0', left: '1000' }),
      revoked: [],
      proof: null,
    })
    expect(asked).toMatchObject([{ origin, keyId: store.rows.vaults.get(address)?.kmsKeyId, need: { quorum: 2 } }])
  })

  test.each([
    ['today', DAY, '4999999999999990'],
    ['another day', DAY - 1, '5000000000000000'],
    ['a day that has not begun here', DAY + 1, '4999999999999990'],
  ])('shows the state with its proof, and what is left after payments of %s', async (_, window, left) => {
    const proof = proofOf(sort({ window, spent: 10n }, { window: 0, spent: 999n }), 1 << byOther)
    const { response } = await read(proof)
    expect(await response.json()).toEqual({
      time: NOW_S,
      sequence: 7,
      budgets: sort({ window, spent: '10', left }, { window: 0, spent: '999', left: '1' }),
      revoked: [other.approver.publicKey],
      proof,
    })
  })

  test('needs the owner’s session', async () => {
    const { address, request, browser, user } = await read(undefined)
    expect((await readProblem(await request(`/vaults/${address}/budget`))).code).toBe('not_authenticated')
    const stranger = browser()
    await stranger.signIn('/auth/other')
    expect((await readProblem(await stranger.get(`/vaults/${address}/budget`))).code).toBe('vault_not_found')
    const { wallet } = { wallet: ((await (await user.get('/wallet/me')).json()) as { address: string }).address }
    expect((await readProblem(await user.get(`/vaults/${wallet}/budget`))).code).toBe('vault_not_found')
    expect((await readProblem(await user.get('/vaults/0x12/budget'))).code).toBe('invalid_request')
  })

  test('is unavailable without a log', async () => {
    const { response } = await read(undefined, { logService: undefined })
    expect(await readProblem(response)).toMatchObject({ code: 'budget_unavailable' })
  })
})

describe('POST /vaults/{address}/revoke', () => {
  const key = agent.approver.publicKey
  const digest = toPrefixedHex(new Uint8Array(hash('sha256', fromHex(key), 'buffer')))
  const revocation = { kind: 'revocation', rule: 255 } as const

  test('revokes with the owner’s session, and returns the first slug again', async () => {
    const { user, created, address, signings, store } = await setUp()
    const answer = await user.post(`/vaults/${address}/revoke`, { key })
    expect([answer.status, await answer.json()]).toEqual([200, { slug: signed.slug }])
    const subject = { address, policy: created.policyHash, key }
    const content = { kind: 'revocation', key, digest: toEventHash({ kind: 'revocation', subject }) }
    expect(signings).toMatchObject([{ grant: 'grant-1', content, vault: { policy: { hash: created.policyHash } } }])
    expect(signings[0]?.vault).not.toHaveProperty('rule')
    const walletId = signings[0]?.walletId ?? ''
    const earlier = { walletId, digest: content.digest as Hex, signature: null, slug: 'earlierearlierearlierQ' }
    store.rows.signed.set(`${walletId}/${content.digest}`, earlier)
    expect(await (await user.post(`/vaults/${address}/revoke`, { key })).json()).toEqual({ slug: earlier.slug })
    expect(signings).toHaveLength(1)
  })

  test('revokes with a passkey’s approval and no session, even when the quota is used up', async () => {
    const { post, approveByPasskey, address, signings, store, clock } = await setUp({ config: { signQuotaPerDay: 1 } })
    store.rows.signed.set('x', {
      walletId: store.rows.vaults.get(address)?.id ?? '',
      digest: null,
      signature: null,
      slug: 'x',
    })
    store.rows.proofs.set('x', { createdAt: clock.now() } as never)
    const approvals = [approveByPasskey(digest, revocation)]
    const answer = await post(`/vaults/${address}/revoke`, { key, approvals })
    expect(await answer.json()).toEqual({ slug: signed.slug })
    expect(signings).toMatchObject([{ owner: expect.stringMatching(/^[0-9a-f]{64}$/), vault: { approvals } }])
  })

  type SetUp = Awaited<ReturnType<typeof setUp>>
  test.each<[string, (given: SetUp) => Approval, string?]>([
    ['by an agent', ({ approve }) => approve(digest, revocation)],
    ['for another key', ({ approveByPasskey }) => approveByPasskey(`0x${'5a'.repeat(32)}`, revocation)],
    ['for another kind', ({ approveByPasskey }) => approveByPasskey(digest, { rule: 255 })],
    ['for a rule', ({ approveByPasskey }) => approveByPasskey(digest, { kind: 'revocation', rule: 0 })],
    [
      'for another vault',
      ({ approveByPasskey }) => approveByPasskey(digest, { ...revocation, vaultAddress: `0x${'11'.repeat(20)}` }),
    ],
    ['for an unknown vault', ({ approveByPasskey }) => approveByPasskey(digest, revocation), `0x${'11'.repeat(20)}`],
    ['that has expired', ({ approveByPasskey }) => approveByPasskey(digest, { ...revocation, expiresMs: 0 })],
  ])('rejects an approval %s, even with a session', async (_, toApproval, at) => {
    const given = await setUp()
    const body = { key, approvals: [toApproval(given)] }
    const path = `/vaults/${at ?? given.address}/revoke`
    for (const response of [await given.post(path, body), await given.user.post(path, body)]) {
      expect([response.status, (await readProblem(response)).code]).toEqual([403, 'approval_invalid'])
    }
    expect(given.signings).toEqual([])
  })

  test('needs a session or an approval, and a session of the owner', async () => {
    const { post, address, browser, signings } = await setUp()
    for (const body of [{ key }, { key, approvals: [] }]) {
      expect((await readProblem(await post(`/vaults/${address}/revoke`, body))).code).toBe('not_authenticated')
    }
    const stranger = browser()
    await stranger.signIn('/auth/other')
    expect((await readProblem(await stranger.post(`/vaults/${address}/revoke`, { key }))).code).toBe('vault_not_found')
    expect(signings).toEqual([])
  })

  test('a session with a browser key needs a stamp, which goes to the enclave', async () => {
    const { user, address, store, signings } = await setUp()
    for (const [id, session] of store.rows.sessions)
      store.rows.sessions.set(id, { ...session, clientKey: '04'.repeat(65) })
    expect((await readProblem(await user.post(`/vaults/${address}/revoke`, { key }))).code).toBe('stamp_missing')
    const stamp = { issuedMs: 1, signature: '77'.repeat(64) }
    expect((await user.post(`/vaults/${address}/revoke`, { key, stamp })).status).toBe(200)
    expect(signings).toMatchObject([{ stamp }])
  })

  test.each([
    ['a key that no agent of the vault has', { key: '5a'.repeat(32) }, 'invalid_request'],
    ['a passkey', { key: toHex(fromHex(passkey.approver.publicKey).slice(0, 32)) }, 'invalid_request'],
    ['no key', {}, 'invalid_request'],
    ['a key with 0x', { key: `0x${key}` }, 'invalid_request'],
    ['a rule', { key, rule: 0 }, 'invalid_request'],
    ['5 KiB', { key, approvals: 'x'.repeat(5_000) }, 'body_too_large'],
  ])('rejects %s', async (_, body, code) => {
    const { user, address, signings } = await setUp()
    expect(await readProblem(await user.post(`/vaults/${address}/revoke`, body))).toMatchObject({ code })
    expect(signings).toEqual([])
  })
})
