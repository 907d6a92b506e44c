import { createPolicy, hashPolicy, type Policy, type Rule, type TimeSource, toPolicyBytes } from '@countersign/policy'
import {
  type AttestAddressResponse,
  type Hex,
  hashOwner,
  type Problem,
  quicknet,
  toHex,
  type VaultInfo,
} from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import { getAddress } from 'viem'
import { describe, expect, test } from 'vitest'
import { createPasskey } from '../../../../packages/policy/test/passkey.ts'
import { createTestApp, scheduleAtOnce, signBody, signed, toDigest, txMetadata } from '../../test/http/testApp.ts'
import { MAX_VAULTS } from '../accounts/vaults.ts'
import { CoordinatorError } from '../errors.ts'

const payment: Rule = {
  kind: 'transaction',
  chainIds: [txMetadata.chainId],
  to: 'any',
  maxValueWei: txMetadata.value,
  maxFeeWei: '100000000000000',
  approvals: 0,
  approvers: 'any',
}
const passkey = createPasskey({ seed: 1, rpId: 'vault.example' })
/** Allows small payments without approval, and larger ones and messages with a passkey. */
const policy = createPolicy({
  version: 1,
  log: null,
  approvers: [passkey.approver],
  rules: [
    payment,
    { ...payment, maxValueWei: '9000000000000000', approvals: 1 },
    { kind: 'message', approvals: 1, approvers: 'any' },
  ],
})
const findRule = (isMeant: (rule: Rule) => boolean) => policy.rules.findIndex(isMeant)
const small = findRule(({ kind, approvals }) => kind === 'transaction' && approvals === 0)
const large = findRule(({ kind, approvals }) => kind === 'transaction' && approvals === 1)
const message = findRule(({ kind }) => kind === 'message')
const FRIEND = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const MISTYPED = FRIEND.replace('C8', 'c8')
const friend = FRIEND.toLowerCase() as Hex
const manySources = createPolicy({
  ...policy,
  rules: [payment],
  schedule: { startsAtMs: 0, everyS: 60, count: 1 },
  time: Array.from({ length: 9 }, (_, at) => ({ kind: 'drand', ...quicknet, chainHash: `0${at}`.repeat(32) })),
})
const withChain = (chainId: number): Policy => createPolicy({ ...policy, rules: [{ ...payment, chainIds: [chainId] }] })
const toSignBody = (changes: Partial<typeof txMetadata>) => {
  const metadata = { ...txMetadata, ...changes }
  return { digest: toDigest(metadata), txMetadata: metadata }
}
/** Well-formed. Only the enclave checks whether it is valid. */
const approval = passkey.approve(
  {
    vaultAddress: `0x${'11'.repeat(20)}`,
    policyHash: hashPolicy(policy),
    rule: 0,
    kind: 'message',
    digest: new Uint8Array(32),
    expiresMs: 1,
  },
  0,
)

async function setUp(changes: Parameters<typeof createTestApp>[0] = {}) {
  const app = createTestApp({ ...changes, deps: { schedule: scheduleAtOnce } })
  const user = app.browser()
  await user.signIn()
  const create = (body: unknown = { policy }, by = user) => by.post('/vaults', body)
  return { ...app, user, create, vault: async () => (await (await create()).json()) as VaultInfo }
}

const problemOf = async (response: Response) => {
  const { code, detail } = (await response.json()) as { code?: string; detail?: string }
  return { status: response.status, code, ...(detail === undefined ? {} : { detail }) }
}

describe('POST /vaults', () => {
  test('returns address and policy once the policy is pinned; the same policy returns the same vault', async () => {
    const { create, user, store } = await setUp()
    const response = await create()
    expect(response.status).toBe(201)
    const vault = (await response.json()) as VaultInfo
    const text = new TextEncoder().encode([...store.rows.vaults.values()][0]?.policy.text)
    expect(vault).toMatchObject({ policy, policyHash: toHex(hashPolicy(policy)), policyCid: toCid(text) })
    expect(Object.keys(vault).sort()).toEqual(['address', 'createdAt', 'policy', 'policyCid', 'policyHash'])
    expect(await (await create()).json()).toEqual(vault)
    expect(await (await user.get('/vaults')).json()).toEqual({ vaults: [vault] })
    expect(store.rows.vaults.size).toBe(1)
  })

  test('creates the same vault for checksummed addresses and unsorted lists, and sends the enclave the canonical policy', async () => {
    const { create, enclave, store } = await setUp()
    const to = [`0x${'70'.repeat(20)}`, friend] as const
    const listed = createPolicy({ ...policy, rules: [...policy.rules, { ...payment, to }] })
    const texts: string[] = []
    const { deriveVault } = enclave
    enclave.deriveVault = (request) => {
      texts.push(request.policy)
      return deriveVault(request)
    }
    const rules = policy.rules.toReversed()
    const given = { ...policy, rules: [...rules, { ...payment, to: [FRIEND, to[0]] }] }
    const vault = (await (await create({ policy: given })).json()) as VaultInfo
    expect(vault).toMatchObject({ policy: listed, policyHash: toHex(hashPolicy(listed)) })
    expect(await (await create({ policy: listed, address: getAddress(vault.address) })).json()).toEqual(vault)
    expect(new Set(texts)).toEqual(new Set([new TextDecoder().decode(toPolicyBytes(listed))]))
    expect(store.rows.vaults.size).toBe(1)
  })

  test('returns policy_not_pinned without an address if pinning takes too long, lists nothing, and returns the vault later', async () => {
    const { create, user, store } = await setUp()
    store.isPinning = false
    const response = await create()
    const text = await response.text()
    expect([response.status, JSON.parse(text).code, text.includes('0x')]).toEqual([503, 'policy_not_pinned', false])
    expect(await (await user.get('/vaults')).json()).toEqual({ vaults: [] })
    const [address = ''] = store.rows.vaults.keys()
    expect(await problemOf(await user.post('/sign/digest', { ...signBody, wallet: address }))).toMatchObject({
      code: 'vault_not_found',
    })
    store.isPinning = true
    expect((await create()).status).toBe(201)
  })

  test.each([
    ['a body of null', null, 'invalid_request'],
    ['no policy', {}, 'invalid_request'],
    ['a member too many', { policy, name: 'Savings' }, 'invalid_request'],
    ['a policy that is a text', { policy: JSON.stringify(policy) }, 'invalid_policy'],
    ['an unknown member', { policy: { ...policy, label: 'x' } }, 'invalid_policy'],
    ['a wrong checksum', { policy: { ...policy, rules: [{ ...payment, to: [MISTYPED] }] } }, 'invalid_policy'],
    ['an address twice', { policy: { ...policy, rules: [{ ...payment, to: [FRIEND, friend] }] } }, 'invalid_policy'],
    ['a vault’s address with a wrong checksum', { policy, address: MISTYPED }, 'invalid_request'],
    ['no rules', { policy: { ...policy, rules: [] } }, 'invalid_policy'],
    ['an unknown version', { policy: { ...policy, version: 2 } }, 'invalid_policy'],
    ['more than 8 sources of time', { policy: manySources }, 'invalid_policy'],
  ])('%s is refused, before the enclave is asked', async (_, body, code) => {
    const { create, store, enclave } = await setUp()
    enclave.failure = new Error('asked')
    expect(await problemOf(await create(body))).toMatchObject({ status: 400, code })
    expect(store.rows.vaults.size).toBe(0)
  })

  test('rejects a schedule whose time sources the service does not use, because the vault could never pay', async () => {
    const satellite = {
      kind: 'satellite',
      key: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    } as const
    const beacon = { kind: 'drand', ...quicknet } as const
    const { create, store } = await setUp({ config: { entropySources: [satellite] } })
    const by = (...time: TimeSource[]) => ({
      policy: createPolicy({ ...policy, rules: [payment], time, schedule: { startsAtMs: 0, everyS: 60, count: 1 } }),
    })
    expect(await problemOf(await create(by(beacon)))).toEqual({
      status: 400,
      code: 'invalid_policy',
      detail: 'time names no entropy source of this service',
    })
    expect(store.rows.vaults.size).toBe(0)
    expect((await create(by(beacon, satellite))).status).toBe(201)
  })

  test('rejects a rule for chains that the service does not sign for, because funds would be locked', async () => {
    const { create, store } = await setUp({ config: { allowedChainIds: [8453] } })
    expect(await problemOf(await create({ policy: withChain(1) }))).toEqual({
      status: 400,
      code: 'invalid_policy',
      detail: 'rules[0]: this service does not sign for its chains',
    })
    expect(store.rows.vaults.size).toBe(0)
    expect((await create({ policy: withChain(8453) })).status).toBe(201)
  })

  test.each([
    [0, 2031],
    [1, 2015],
  ])('with %i approvals, a rule allows as many words as fit into a request', async (approvals, most) => {
    const { create, user, store } = await setUp()
    const withWords = (words: number) => ({
      policy: createPolicy({ ...policy, rules: [{ ...payment, selectors: ['0x12345678'], words, approvals }] }),
    })
    expect(await problemOf(await create(withWords(most + 1)))).toEqual({
      status: 400,
      code: 'invalid_policy',
      detail: 'rules[0].words: such a transaction exceeds the size limit of a request',
    })
    expect(store.rows.vaults.size).toBe(0)
    const { address: wallet } = (await (await create(withWords(most))).json()) as VaultInfo
    const data = `0x12345678${'ff'.repeat(32 * most)}` as const
    const body = { ...toSignBody({ data }), wallet, rule: 0, approvals: [approval].slice(0, approvals) }
    expect((await user.post('/sign/digest', body)).status).toBe(200)
  })

  test.each([
    ['another policy', { policy: 'ab'.repeat(32) }],
    ['an address that is not of the key', { address: `0x${'ab'.repeat(20)}` as const }],
  ])('stores nothing if the enclave returns %s', async (_, change) => {
    const { create, store, enclave } = await setUp()
    enclave.changeVault = (vault) => ({ ...vault, ...change })
    expect(await problemOf(await create())).toMatchObject({ status: 502, code: 'attestation_invalid' })
    expect(store.rows.vaults.size).toBe(0)
  })

  test('neither lists nor returns an address that was changed in the database, because payments to it would be lost', async () => {
    const { create, user, vault, store } = await setUp()
    const { address } = await vault()
    const [row] = store.rows.vaults.values()
    if (row === undefined) throw new Error('no vault')
    expect((await user.get('/vaults')).status).toBe(200)
    const mismatch = { status: 403, code: 'key_binding_mismatch' }
    for (const change of [{ address: `0x${'66'.repeat(20)}` }, { kmsKeyId: '66'.repeat(16) }] as const) {
      store.rows.vaults.set(address, { ...row, ...change })
      expect(await problemOf(await create())).toMatchObject(mismatch)
      expect(await problemOf(await user.get('/vaults'))).toMatchObject(mismatch)
    }
    // Another user's rules under the hash of the policy.
    store.rows.vaults.set(address, { ...row, policy: { ...row.policy, text: '{}' } })
    expect(await problemOf(await user.get('/vaults'))).toMatchObject({ status: 502, code: 'attestation_invalid' })
  })

  test.each([
    ['address', { address: `0x${'66'.repeat(20)}` }],
    ['key', { kmsKeyId: '66'.repeat(16) }],
    ['policy', { policy: { hash: toHex(hashPolicy(policy)), text: '{}' } }],
  ] as const)('nor is one that gets another %s while its policy is being pinned', async (_, change) => {
    const { create, store } = await setUp()
    const { findVault } = store
    // When the row is read again, it is the thief's.
    store.findVault = async (parameters) => {
      const found = await findVault(parameters)
      return found?.isPinned ? { ...found, ...change } : found
    }
    expect(await problemOf(await create())).toMatchObject({ status: 403, code: 'key_binding_mismatch' })
  })

  test('does not list another user’s vaults in a session that was moved to that user', async () => {
    const { browser, user, create, store } = await setUp()
    const bob = browser()
    await bob.signIn('/auth/other')
    await create({ policy }, bob)
    expect((await bob.get('/vaults')).status).toBe(200)
    const [row] = store.rows.vaults.values()
    const [owner] = store.rows.users.values()
    for (const [id, one] of store.rows.vaults) store.rows.vaults.set(id, { ...one, userId: owner?.id ?? '' })
    expect(row?.userId).not.toBe(owner?.id)
    expect(await problemOf(await user.get('/vaults'))).toMatchObject({ status: 403, code: 'key_binding_mismatch' })
  })

  test('derives each listed vault once per session, as an existing one', async () => {
    const { browser, user, vault, enclave } = await setUp()
    await vault()
    const before = enclave.derived.length
    const list = async (by = user) => (await by.get('/vaults')).status
    expect([await list(), await list()]).toEqual([200, 200])
    expect(enclave.derived.slice(before)).toMatchObject([{ isKnown: true }])
    enclave.failure = new CoordinatorError('enclave_unavailable', 'down')
    expect(await list()).toBe(200)
    enclave.failure = undefined
    const elsewhere = browser()
    await elsewhere.signIn()
    expect(await list(elsewhere)).toBe(200)
    expect(enclave.derived.slice(before)).toHaveLength(2)
  })

  test('returns an earlier vault even if its policy is no longer allowed for new ones', async () => {
    const { create, vault, store, enclave } = await setUp()
    await vault()
    const [first] = store.rows.vaults.values()
    const [asked] = enclave.derived
    if (first === undefined || asked === undefined) throw new Error('no vault')
    const text = Buffer.from(toPolicyBytes(manySources)).toString()
    const { address, keyId: kmsKeyId, policy: hash } = await enclave.deriveVault({ ...asked, policy: text })
    store.rows.vaults.set(address, { ...first, id: 'before', address, kmsKeyId, policy: { hash, text } })
    const response = await create({ policy: manySources })
    expect([response.status, ((await response.json()) as VaultInfo).address]).toEqual([201, address])
    expect(enclave.derived.at(-1)).toMatchObject({ policy: text, isKnown: true })
  })

  test('keeps the codes of the enclave’s rejections', async () => {
    const { create, enclave } = await setUp()
    enclave.failure = new CoordinatorError('invalid_policy', 'refused', { details: 'policy_not_supported' })
    expect(await problemOf(await create())).toEqual({
      status: 400,
      code: 'invalid_policy',
      detail: 'policy_not_supported',
    })
  })

  test(`allows ${MAX_VAULTS} vaults per user`, async () => {
    const { create, store } = await setUp()
    const first = (await (await create()).json()) as VaultInfo
    const [vault] = store.rows.vaults.values()
    if (vault === undefined) throw new Error('no vault')
    for (let index = 1; index < MAX_VAULTS; index += 1) {
      store.rows.vaults.set(`${index}`, { ...vault, id: `${index}`, policy: { hash: `${index}`, text: '{}' } })
    }
    expect(await problemOf(await create({ policy: withChain(5) }))).toMatchObject({
      status: 409,
      code: 'too_many_vaults',
    })
    expect(await (await create()).json()).toEqual(first)
  })

  test('needs a session, and other users neither see nor use the vault', async () => {
    const { browser, create, vault } = await setUp()
    const stranger = browser()
    expect((await stranger.get('/vaults')).status).toBe(401)
    expect((await stranger.post('/vaults', { policy })).status).toBe(401)
    const { address } = await vault()
    const bob = browser()
    await bob.signIn('/auth/other')
    expect(await (await bob.get('/vaults')).json()).toEqual({ vaults: [] })
    expect(await problemOf(await bob.post('/sign/digest', { ...signBody, wallet: address }))).toMatchObject({
      status: 404,
      code: 'vault_not_found',
    })
    expect((await bob.post(`/vaults/${address}/attest`)).status).toBe(404)
    const own = (await (await create({ policy }, bob)).json()) as VaultInfo
    expect(own.address).not.toBe(address)
  })

  test('shares the rate limit of signing', async () => {
    const { create } = await setUp({
      config: { rateLimits: { sign: { count: 1, seconds: 600 }, provision: 'off', auth: 'off', proof: 'off' } },
    })
    expect((await create()).status).toBe(201)
    expect((await create()).status).toBe(429)
  })

  test('limits guesses of vault addresses', async () => {
    const { user } = await setUp({
      config: { rateLimits: { sign: { count: 1, seconds: 600 }, provision: 'off', auth: 'off', proof: 'off' } },
    })
    const guess = async () => (await user.post('/sign/digest', { ...signBody, wallet: `0x${'11'.repeat(20)}` })).status
    expect([await guess(), await guess()]).toEqual([404, 429])
  })

  test('returns Allow for other methods', async () => {
    const { request } = await setUp()
    const response = await request('/vaults', { method: 'PUT', headers: { origin: 'https://app.example' } })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST'])
  })
})

describe('signing with a vault', () => {
  test('uses the vault’s key and policy, or the user’s own wallet without `wallet`', async () => {
    const { user, vault, signings, store } = await setUp()
    const { address, policyHash } = await vault()
    const [stored] = store.rows.vaults.values()
    const checksummed = `0x${address.slice(2).toUpperCase()}`
    const body = { ...signBody, wallet: checksummed, rule: small }
    expect(await (await user.post('/sign/digest', body)).json()).toEqual(signed)
    await user.post('/sign/digest', signBody)
    const vaultUse = { policy: { hash: policyHash }, rule: small }
    expect(signings[0]).toMatchObject({ keyId: stored?.kmsKeyId, address, vault: vaultUse })
    const [wallet] = store.rows.wallets.values()
    expect(signings[1]).toMatchObject({ keyId: wallet?.kmsKeyId, address: wallet?.address })
    expect(signings[1]).not.toHaveProperty('vault')
  })

  test('needs the index of a rule', async () => {
    const { user, vault, signings } = await setUp()
    const { address: wallet } = await vault()
    for (const [path, body] of [
      ['/sign/digest', signBody],
      ['/sign/message', { message: '0x00' }],
    ] as const) {
      expect(await problemOf(await user.post(path, { ...body, wallet }))).toEqual({
        status: 400,
        code: 'invalid_request',
        detail: 'rule is missing: expected the index of the rule that is to allow this',
      })
    }
    expect(signings).toEqual([])
  })

  test('checks only the named rule', async () => {
    const { user, vault, signings } = await setUp()
    const { address: wallet } = await vault()
    const trySign = async (rule: number) => problemOf(await user.post('/sign/digest', { ...signBody, wallet, rule }))
    expect(await trySign(large)).toMatchObject({ code: 'approvals_missing' })
    expect(await trySign(message)).toMatchObject({ code: 'policy_refused' })
    expect(await trySign(policy.rules.length)).toMatchObject({ code: 'policy_refused' })
    expect(signings).toEqual([])
  })

  test('accepts the own wallet’s address, but not with approvals or a rule', async () => {
    const { user, signings, store } = await setUp()
    const [wallet] = store.rows.wallets.values()
    expect((await user.post('/sign/digest', { ...signBody, wallet: wallet?.address })).status).toBe(200)
    expect(signings[0]).not.toHaveProperty('vault')
    for (const use of [{ approvals: [approval] }, { rule: 0 }]) {
      const body = { message: '0x00', wallet: wallet?.address, ...use }
      expect(await problemOf(await user.post('/sign/message', body))).toMatchObject({ code: 'invalid_request' })
    }
  })

  test.each([
    [
      'above the limit, without approval',
      { ...toSignBody({ value: '9000000000000000' }), rule: large },
      'approvals_missing',
      '1 more approval',
    ],
    [
      'above every limit',
      { ...toSignBody({ value: '9000000000000001' }), rule: large },
      'policy_refused',
      'The amount is above the limit',
    ],
    ['on another chain', { ...toSignBody({ chainId: 1 }), rule: small }, 'policy_refused', 'The chain is not'],
    ['a call', { ...toSignBody({ data: '0x12345678' }), rule: small }, 'policy_refused', 'Only payments without data'],
  ])('%s: refused before a sample is spent, with the reason in words', async (_, body, code, words) => {
    const { user, vault, signings, warnings } = await setUp()
    const { address } = await vault()
    const problem = await problemOf(await user.post('/sign/digest', { ...body, wallet: address }))
    expect(problem).toMatchObject({ status: 403, code, detail: expect.stringContaining(words) })
    expect(signings).toEqual([])
    // A webhook reports it, without the content of the request.
    expect(warnings).toEqual([
      {
        type: 'vault.refused',
        data: {
          walletAddress: address,
          policyHash: expect.stringMatching(/^[0-9a-f]{64}$/),
          kind: 'transaction',
          code,
        },
      },
    ])
  })

  test('names the rule that was checked, and its reasons', async () => {
    const { user, vault } = await setUp()
    const { address } = await vault()
    const body = { ...toSignBody({ value: '9000000000000001' }), wallet: address, rule: large }
    const { refusal } = (await (await user.post('/sign/digest', body)).json()) as Problem
    expect(refusal).toMatchObject({
      nearest: large,
      rules: [{ rule: large, reasons: [{ code: 'value_above_max' }] }],
    })
    expect(refusal?.rules).toHaveLength(1)
  })

  test('passes approvals to the enclave unchanged; an empty list counts as none', async () => {
    const { user, vault, signings } = await setUp()
    const { address: wallet } = await vault()
    const body = { ...toSignBody({ value: '9000000000000000' }), wallet, rule: large }
    expect((await user.post('/sign/digest', { ...body, approvals: [approval] })).status).toBe(200)
    const hello = { message: '0x00', wallet, rule: message, approvals: [approval] }
    expect((await user.post('/sign/message', hello)).status).toBe(200)
    expect(signings.map(({ vault }) => vault?.approvals)).toEqual([[approval], [approval]])
    expect(await problemOf(await user.post('/sign/digest', { ...body, approvals: [] }))).toMatchObject({
      code: 'approvals_missing',
    })
  })

  test.each([
    ['approvals without a wallet', { approvals: [approval] }],
    ['a wallet that is no address', { wallet: '0x12' }],
    ['a rule without a wallet', { rule: 0 }],
    ['a rule below zero', { wallet: `0x${'11'.repeat(20)}`, rule: -1 }],
    ['a rule that is no integer', { wallet: `0x${'11'.repeat(20)}`, rule: 0.5 }],
    ['rule 255, which stands for no rule in stamps', { wallet: `0x${'11'.repeat(20)}`, rule: 255 }],
    ['a rule that is text', { wallet: `0x${'11'.repeat(20)}`, rule: '0' }],
    ['a stamp of null', { stamp: null }],
    ['a stamp without a time', { stamp: { signature: '77'.repeat(64) } }],
    ['a stamp whose time is text', { stamp: { issuedMs: '1', signature: '77'.repeat(64) } }],
    ['a stamp of 63 bytes', { stamp: { issuedMs: 1, signature: '77'.repeat(63) } }],
    ['a stamp in upper case', { stamp: { issuedMs: 1, signature: 'AB'.repeat(64) } }],
    ['a stamp with a member too many', { stamp: { issuedMs: 1, signature: '77'.repeat(64), key: '' } }],
    ['a wallet of null', { wallet: null }],
    ['approvals that are no list', { wallet: `0x${'11'.repeat(20)}`, approvals: {} }],
    ['an approver twice', { wallet: `0x${'11'.repeat(20)}`, approvals: [approval, approval] }],
    ['an approval with a member too many', { wallet: `0x${'11'.repeat(20)}`, approvals: [{ ...approval, id: 1 }] }],
    ['an approval in upper case', { wallet: `0x${'11'.repeat(20)}`, approvals: [{ ...approval, signature: 'AB' }] }],
  ])('%s: invalid_request', async (_, use) => {
    const { user, signings } = await setUp()
    for (const [path, body] of [
      ['/sign/digest', signBody],
      ['/sign/message', { message: '0x00' }],
    ] as const) {
      expect(await problemOf(await user.post(path, { ...body, ...use }))).toMatchObject({ code: 'invalid_request' })
    }
    expect(signings).toEqual([])
  })

  test('rejects `wallet` for an authorization', async () => {
    const { user, vault } = await setUp()
    const { address: wallet } = await vault()
    const body = { chainId: 31337, address: `0x${'ab'.repeat(20)}`, nonce: 3, wallet }
    expect(await problemOf(await user.post('/sign/authorization', body))).toMatchObject({ code: 'invalid_request' })
  })

  test('checks the operator’s chains first, then rejects typed data without a rule', async () => {
    const { user, vault } = await setUp({ config: { allowedChainIds: [txMetadata.chainId] } })
    const { address: wallet } = await vault()
    const typedData = (chainId: number) => ({
      domain: { chainId },
      types: { Note: [{ name: 'text', type: 'string' }] },
      primaryType: 'Note',
      message: { text: 'hello' },
      wallet,
      rule: message,
    })
    expect(await problemOf(await user.post('/sign/typed-data', typedData(1)))).toMatchObject({
      code: 'chain_not_allowed',
    })
    const refused = await problemOf(await user.post('/sign/typed-data', typedData(txMetadata.chainId)))
    expect(refused).toMatchObject({ status: 403, code: 'policy_refused' })
  })

  test('the quota counts all wallets of a user', async () => {
    const { user, vault, store, clock } = await setUp({ config: { signQuotaPerDay: 1 } })
    const { address: wallet } = await vault()
    const [stored] = store.rows.vaults.values()
    store.rows.signed.set('x', { walletId: stored?.id ?? '', digest: null, signature: null, slug: 'x' })
    store.rows.proofs.set('x', { createdAt: clock.now() } as never)
    for (const body of [signBody, { ...signBody, wallet, rule: small }]) {
      expect(await problemOf(await user.post('/sign/digest', body))).toMatchObject({ code: 'quota_spent' })
    }
  })
})

describe('attested addresses', () => {
  test('creates one statement per wallet without a signature, and returns the same slug again', async () => {
    const { user, vault, signings, store } = await setUp()
    const { address, policyHash } = await vault()
    const ofVault = (await (await user.post(`/vaults/${address}/attest`)).json()) as AttestAddressResponse
    const ofWallet = (await (await user.post('/wallet/attest', {})).json()) as AttestAddressResponse
    expect([ofVault.slug, ofWallet.slug]).toEqual([signed.slug, signed.slug])
    const [wallet] = store.rows.wallets.values()
    expect(signings).toMatchObject([
      {
        address,
        content: { kind: 'address', owner: toHex(hashOwner(ofVault.owner)) },
        vault: { policy: { hash: policyHash }, rule: undefined },
      },
      { address: wallet?.address, content: { kind: 'address', owner: toHex(hashOwner(ofWallet.owner)) } },
    ])
    expect(ofVault.owner.identity).toEqual(ofWallet.owner.identity)
    expect(ofVault.owner.identity).toMatchObject({ subject: 'alice' })
    expect(ofVault.owner.salt).not.toBe(ofWallet.owner.salt)
    const { content, walletId } = signings[0] ?? {}
    const earlier = {
      walletId: walletId ?? '',
      digest: content?.digest ?? null,
      signature: null,
      slug: 'earlierearlierearlierQ',
    }
    store.rows.signed.set(`${walletId}/${content?.digest}`, earlier)
    expect(await (await user.post(`/vaults/${address}/attest`)).json()).toEqual({ ...ofVault, slug: earlier.slug })
    expect(signings).toHaveLength(2)
  })

  test('creates another statement if the owner’s commitment changes, as with another e-mail address', async () => {
    const { user, signings, store } = await setUp()
    const attest = async () => (await (await user.post('/wallet/attest')).json()) as AttestAddressResponse
    const { slug, owner } = await attest()
    const { walletId, content } = signings[0] ?? {}
    const earlier = {
      walletId: walletId ?? '',
      digest: content?.digest ?? null,
      signature: null,
      slug: 'earlierearlierearlierQ',
    }
    store.rows.signed.set(`${walletId}/${content?.digest}`, earlier)
    expect(await attest()).toEqual({ slug: earlier.slug, owner })
    const changed = { ...owner, identity: { ...owner.identity, email: 'new@mail.example' } }
    for (const [id, session] of store.rows.sessions) store.rows.sessions.set(id, { ...session, owner: changed })
    expect(await attest()).toEqual({ slug, owner: changed })
    expect(signings).toHaveLength(2)
  })

  test.each([
    ['another address', { address: `0x${'66'.repeat(20)}` }],
    ['another key', { kmsKeyId: '66'.repeat(16) }],
  ] as const)('attests no vault whose row has %s', async (_, change) => {
    const { user, vault, signings, store } = await setUp()
    const { address } = await vault()
    const [row] = store.rows.vaults.values()
    if (row === undefined) throw new Error('no vault')
    store.rows.vaults.set(address, { ...row, ...change })
    const { status } = await user.post(`/vaults/${address}/attest`)
    expect([403, 502]).toContain(status)
    expect(signings).toEqual([])
  })

  test.each([{ stamp: null }, { stamp: { issuedMs: 1 } }, { rule: 0 }, { approvals: [] }, { owner: '' }, []])(
    'rejects a body of %j',
    async (body) => {
      const { user, vault, signings } = await setUp()
      const { address } = await vault()
      for (const path of ['/wallet/attest', `/vaults/${address}/attest`]) {
        expect(await problemOf(await user.post(path, body))).toMatchObject({ status: 400, code: 'invalid_request' })
      }
      expect(signings).toEqual([])
    },
  )

  test.each(['0x12', `0x${'11'.repeat(20)}`])('returns vault_not_found for %s', async (address) => {
    const { user, signings } = await setUp()
    expect([400, 404]).toContain((await user.post(`/vaults/${address}/attest`)).status)
    expect(signings).toEqual([])
  })
})
