import { hash } from 'node:crypto'
import { simulatedRoots } from '@countersign/attestation/simulator'
import {
  assertCosigned,
  assertInclusion,
  decodeLogEntry,
  parseCheckpoint,
  parseNote,
  parseVkey,
} from '@countersign/log'
import { createPolicy, hashPolicy, parseStateHex } from '@countersign/policy'
import {
  type ApprovalKind,
  fromHex,
  type Hex,
  hashTreeLeaf,
  hashTypedData,
  type LogInfo,
  type Opening,
  toCanonicalJson,
  toHex,
  toPrefixedHex,
  type VaultBudgetInfo,
  type VaultInfo,
} from '@countersign/protocol'
import { checkReceipt, parseReceiptCar } from '@countersign/receipt'
import { createTx, createUser, type TestUser, toDigest, waitForCompleteProofs } from '@countersign/testing/stack'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startContract } from '../../../contracts/startContract.ts'
import { createAgent } from '../../../packages/policy/test/agentKey.ts'
import { createPasskey } from '../../../packages/policy/test/passkey.ts'
import { type Backend, startBackend } from '../test/backend.ts'

type Answer = { signature: Hex; slug: string; opening?: Opening }

const token: Hex = `0x${'70'.repeat(20)}`
const [agent, other] = [createAgent(9), createAgent(8)]
const passkey = createPasskey({ seed: 1, rpId: 'vault.example' })
const { chainId } = createTx(0)
/** The value and the gas of `createTx`. */
const COST = 42_001

/* Runs real processes of one backend in order, with one vault: an enclave that counts, and three witnesses with a quorum of two. */
describe('a vault with budgets, as separate processes', () => {
  let started: Awaited<ReturnType<typeof startContract>>
  let backend: Backend
  let alice: TestUser
  let vault: VaultInfo
  let nonce = 0
  beforeAll(async () => {
    started = await startContract()
    backend = await startBackend({ env: { ...started.env, RATE_LIMIT_SIGN: 'off' }, log: {} })
    await backend.untilReady()
    alice = createUser(backend)
    await alice.signIn('alice')
    const spend = { kind: 'spend', chainIds: [chainId], payees: 'any', approvals: 1, approvers: [1] } as const
    const witnesses = backend.witnesses.map(({ vkey }) => toHex(parseVkey(vkey).publicKey)).sort()
    const policy = createPolicy({
      version: 1,
      log: { origin: backend.logOrigins[0], witnesses, quorum: 2 },
      approvers: [passkey.approver, agent.approver, other.approver],
      budgets: [
        { chainId, token: null, limit: String(10 * COST), periodS: 31_536_000 },
        { chainId, token, limit: '1000', periodS: 0 },
      ],
      rules: [
        { ...spend, forms: ['coin', 'eip3009'], session: false },
        {
          kind: 'transaction',
          chainIds: 'any',
          to: 'any',
          maxValueWei: '1',
          maxFeeWei: '100000',
          approvals: 1,
          approvers: [0],
        },
      ],
    })
    vault = await read<VaultInfo>(alice.post('/vaults', { policy }), 201)
  }, 120_000)
  afterAll(async () => {
    await backend?.stop()
    await started?.chain.stop()
  })

  async function read<Body>(pending: Promise<Response>, status = 200): Promise<Body> {
    const response = await pending
    const text = await response.text()
    expect({ status: response.status, text }).toMatchObject({ status })
    return JSON.parse(text)
  }
  const getPolicy = () => vault.policy as ReturnType<typeof createPolicy>
  const indexOf = (key: string) => getPolicy().approvers.findIndex(({ publicKey }) => publicKey === key)
  const spendRule = () => getPolicy().rules.findIndex(({ kind }) => kind === 'spend')
  const toRequest = (digest: Hex, kind: ApprovalKind, rule = spendRule()) => ({
    vaultAddress: vault.address,
    policyHash: hashPolicy(getPolicy()),
    rule,
    kind,
    digest: fromHex(digest.slice(2)),
    expiresMs: Date.now() + 60_000,
  })
  const approve = (digest: Hex, kind: ApprovalKind) =>
    agent.approve(toRequest(digest, kind), indexOf(agent.approver.publicKey))
  /** Without a cookie. */
  const post = (path: string, body: unknown) =>
    backend.call(`/vaults/${vault.address}/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  function pay(txMetadata = createTx(nonce++)) {
    const digest = toDigest(txMetadata)
    return post('sign', {
      kind: 'transaction',
      digest,
      txMetadata,
      rule: spendRule(),
      approvals: [approve(digest, 'transaction')],
    })
  }
  function payToken(value: string) {
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
        from: vault.address,
        to: `0x${'a1'.repeat(20)}`,
        value,
        validAfter: '0',
        validBefore: String(Math.floor(Date.now() / 1000) + 600),
        nonce: `0x${hash('sha256', `nonce ${nonce++}`, 'hex')}`,
      },
    }
    const approvals = [approve(toPrefixedHex(hashTypedData(content)), 'typed-data')]
    return post('sign', { kind: 'typed-data', ...content, rule: spendRule(), approvals })
  }
  const readBudget = () => read<VaultBudgetInfo>(alice.get(`/vaults/${vault.address}/budget`))

  async function expectVerified({ slug, opening }: Pick<Answer, 'slug' | 'opening'>, steps: readonly string[]) {
    const [proof] = await waitForCompleteProofs({ url: backend.url, slugs: [slug], timeoutMs: 90_000 })
    const car = await fetch(`${backend.url}/ipfs/${proof?.ipfsCid}?format=car`)
    const { bytes, collateral, blocks } = parseReceiptCar(new Uint8Array(await car.arrayBuffer()))
    const result = await checkReceipt(bytes, collateral as Uint8Array, {
      roots: simulatedRoots(),
      mockEntropyKeys: [backend.satellite.publicKey],
      cid: proof?.ipfsCid ?? '',
      blocks,
      ...(opening && { opening: toCanonicalJson(opening) }),
    })
    expect(result.steps.filter(({ status }) => status === 'fail')).toEqual([])
    const passed = result.steps.filter(({ status }) => status === 'pass').map(({ id }) => id as string)
    expect(passed).toEqual(expect.arrayContaining(['log', ...steps]))
    expect(result.verdict).toBe('mock')
    return proof
  }

  test('an agent pays without a session, after the coordinator has shown the witnesses’ time, and the receipt has the counted amounts', async () => {
    expect(await readBudget()).toMatchObject({ sequence: 0, revoked: [], proof: null })
    const first = await read<Answer>(pay())
    await expectVerified(first, ['vault-rule', 'vault-approvals', 'vault-budget'])
    const second = await read<Answer>(payToken('400'))
    await expectVerified(second, ['vault-rule', 'vault-approvals', 'vault-budget', 'opening'])
  }, 240_000)

  test('GET /vaults/{address}/budget proves the state in a cosigned log', async () => {
    const { sequence, budgets, proof } = await readBudget()
    expect(sequence).toBe(2)
    expect(budgets.map(({ spent, left }) => [spent, left]).toSorted()).toEqual([
      ['400', '600'],
      [String(COST), String(9 * COST)],
    ])
    if (proof === null) throw new Error('no proof')
    expect(parseStateHex(proof.state)?.sequence).toBe(2)
    const entry = decodeLogEntry(fromHex(proof.entry))
    if (entry.kind !== 'table') throw new Error('not the root of a table')
    const leaf = (hex: string) => hashTreeLeaf(fromHex(hex))
    const path = proof.path.map(fromHex)
    assertInclusion({
      leaf: leaf(proof.state),
      index: proof.row,
      size: entry.rows,
      root: fromHex(entry.root),
      proof: path,
    })
    const { size, root } = parseCheckpoint(parseNote(proof.checkpoint).text)
    assertInclusion({ leaf: leaf(proof.entry), index: proof.index, size, root, proof: proof.entryPath.map(fromHex) })
    const { logs } = await read<{ logs: LogInfo[] }>(fetch(`${backend.url}/log`))
    const { key = '' } = logs.find(({ origin }) => origin === backend.logOrigins[0]) ?? {}
    const { log } = getPolicy()
    if (log === null) throw new Error('no log')
    expect(() => assertCosigned(proof.checkpoint, { log: parseVkey(key), policy: log })).not.toThrow()
  }, 60_000)

  test('of 24 payments at once, exactly as many are signed as the budget allows', async () => {
    const answers = await Promise.all(Array.from({ length: 24 }, () => pay()))
    const bodies = await Promise.all(
      answers.map(async (answer) => ({ status: answer.status, ...(await answer.json()) })),
    )
    expect(bodies.filter(({ status }) => status === 200)).toHaveLength(9)
    const coin = getPolicy().budgets?.findIndex((budget) => budget.token === null)
    const refused = bodies.filter(({ status }) => status === 403)
    expect(new Set(refused.map(({ code, budget, left }) => `${code} ${budget} ${left}`))).toEqual(
      new Set([`budget_exceeded ${coin} 0`]),
    )
    expect(refused).toHaveLength(15)
  }, 120_000)

  test('equal payments at once are counted once', async () => {
    const before = (await readBudget()).sequence
    const asked = [await payToken('100'), await payToken('100')]
    expect(asked.map(({ status }) => status)).toEqual([200, 200])
    expect((await readBudget()).sequence).toBe(before + 2)
    const transaction = createTx(nonce++, { value: '0', gas: '0' })
    const same = await Promise.all(Array.from({ length: 16 }, () => read<Answer>(pay(transaction))))
    expect(new Set(same.map(({ slug }) => slug)).size).toBe(1)
    expect((await readBudget()).sequence).toBe(before + 3)
  }, 120_000)

  test('a revocation is final: later payments are refused, and both ways return its slug', async () => {
    const key = agent.approver.publicKey
    const first = await read<{ slug: string }>(alice.post(`/vaults/${vault.address}/revoke`, { key }))
    const proof = await expectVerified(first, ['vault-policy', 'vault-approvals'])
    expect(proof).toMatchObject({ kind: 'revocation', chainId: 0 })
    const revoke = (one: string) => {
      const digest: Hex = `0x${hash('sha256', fromHex(one), 'hex')}`
      const approval = passkey.approve(toRequest(digest, 'revocation', 255), indexOf(passkey.approver.publicKey))
      return read<{ slug: string }>(post('revoke', { key: one, approvals: [approval] }))
    }
    expect(await revoke(key)).toEqual(first)
    const second = await revoke(other.approver.publicKey)
    expect(second.slug).not.toBe(first.slug)
    await expectVerified(second, ['vault-policy', 'vault-approvals'])
    expect(await read(payToken('1'), 403)).toMatchObject({
      code: 'approval_invalid',
      detail: 'approvals[0]: approver_revoked',
    })
    expect((await readBudget()).revoked.toSorted()).toEqual([key, other.approver.publicKey].toSorted())
    const page = await read<{ transactions: { kind?: string }[] }>(alice.get('/wallet/transactions'))
    expect(page.transactions[0]).toMatchObject({ kind: 'revocation', walletAddress: vault.address })
  }, 240_000)
})
