import { createSimulatedSatellite, developmentSeed } from '@countersign/attestation/simulator'
import { countSpends, createPolicy, type Policy, type Spend, type TransactionRule } from '@countersign/policy'
import type { Approval, Hex, TypedData, VaultBudget } from '@countersign/protocol'
import { createAgent } from '../../policy/test/agentKey.ts'
import { type AssertionChanges, createPasskey, type Passkey } from '../../policy/test/passkey.ts'
import {
  createSimulatedLog,
  type SimulatedApprovalRequest,
  type SimulatedAttestationOptions,
  type SimulatedLogOptions,
  type SimulatedSigning,
} from '../src/simulator/index.ts'

/* Vaults with rules for the simulator's signatures, and their passkeys. */

const ETHER = 10n ** 18n

/** The simulator's signing time for them. */
const SIGNED_AT_MS = Date.parse('2026-06-15T12:00:00.123Z')
const SIGNED_AT_S = Math.floor(SIGNED_AT_MS / 1000)
const HOUR_MS = 3_600_000

const passkeys: readonly Passkey[] = [1, 2, 3].map((seed) => createPasskey({ seed, rpId: 'vault.example' }))
const approvers = passkeys.map(({ approver }) => approver)

/** Less than the simulator's payment of 1 ETH. */
const smallPayment: TransactionRule = {
  kind: 'transaction',
  chainIds: [31337],
  to: ['0x00000000000000000000000000000000000000c5'],
  maxValueWei: String(ETHER / 10n),
  maxFeeWei: String(ETHER / 100n),
  approvals: 0,
  approvers: 'any',
}

const payment: TransactionRule = { ...smallPayment, maxValueWei: String(2n * ETHER) }

/** Small payments without approval, everything else with one of two passkeys. */
export const approved: Policy = createPolicy({
  version: 1,
  log: null,
  approvers: approvers.slice(0, 2),
  rules: [
    smallPayment,
    { ...payment, approvals: 1 },
    { kind: 'message', approvals: 1, approvers: 'any' },
    {
      kind: 'typed-data',
      domains: [{ name: 'Example', version: '1', chainId: 31337, verifyingContract: `0x${'c5'.repeat(20)}` as Hex }],
      primaryTypes: ['Mail'],
      approvals: 1,
      approvers: 'any',
    },
  ],
})

/** Payments with two of three passkeys. */
export const approvedTwice: Policy = createPolicy({
  version: 1,
  log: null,
  approvers,
  rules: [{ ...payment, approvals: 2 }],
})

/** One payment a day, starting the day before the simulator signs. */
export const scheduled: Policy = createPolicy({
  version: 1,
  time: [{ kind: 'satellite', key: createSimulatedSatellite().publicKey }],
  log: null,
  approvers: [],
  schedule: { startsAtMs: SIGNED_AT_MS - 24 * HOUR_MS, everyS: 86_400, count: 1 },
  rules: [payment],
})

/** The log that counts the budgets. */
const budgetLog: SimulatedLogOptions = { witnesses: 3, quorum: 2, cosigners: [0, 2], size: 11, index: 6 }
const { setting } = createSimulatedLog(developmentSeed, budgetLog)

const agents = [1, 2].map(createAgent).toSorted((a, b) => (a.approver.publicKey < b.approver.publicKey ? -1 : 1))
export const agentKeys: readonly string[] = agents.map(({ approver }) => approver.publicKey)

const TOKEN = `0x${'70'.repeat(20)}` as const
const PAYEE = `0x${'a1'.repeat(20)}` as const

/** Payments from budgets: by the first agent without a session, and by a passkey in a session. The second agent has no rule that pays. */
export const spending: Policy = createPolicy({
  version: 1,
  log: { origin: setting.origins[0] ?? '', witnesses: setting.witnesses, quorum: 2 },
  approvers: [...approvers.slice(0, 1), ...agents.map(({ approver }) => approver)],
  // In their canonical order: the token each day and for life, and the coin each day.
  budgets: [
    { chainId: 31337, token: TOKEN, limit: '10000000', periodS: 86_400 },
    { chainId: 31337, token: TOKEN, limit: '100000000', periodS: 0 },
    { chainId: 31337, token: null, limit: '1000000000000000', periodS: 86_400 },
  ],
  rules: [
    {
      kind: 'spend',
      chainIds: [31337],
      payees: 'any',
      forms: ['coin', 'transfer'],
      approvals: 1,
      approvers: [0],
      session: true,
    },
    {
      kind: 'spend',
      chainIds: [31337],
      payees: [PAYEE],
      forms: ['eip3009', 'transfer'],
      approvals: 1,
      approvers: [1],
      session: false,
    },
    { ...payment, approvals: 1, approvers: [0] },
  ],
})

/** The rule for the agent, and the one for the passkey. */
export const agentRule: number = spending.rules.findIndex((rule) => rule.kind === 'spend' && !rule.session)
export const passkeyRule: number = spending.rules.findIndex((rule) => rule.kind === 'spend' && rule.session)

const AMOUNT = 2_500_000n

/** A transfer of tokens, with its fee. */
export const transfer: NonNullable<SimulatedAttestationOptions['txMetadata']> = {
  to: TOKEN,
  value: '0',
  data: `0xa9059cbb${PAYEE.slice(2).padStart(64, '0')}${AMOUNT.toString(16).padStart(64, '0')}`,
  gas: '60000',
}
const tokens: Spend = { chainId: 31337, token: TOKEN, amount: AMOUNT }
const fee: Spend = { chainId: 31337, token: null, amount: 60_000n * 2_000_000_000n }

/** The same payment as typed data. */
const toAuthorization = (from: Hex): TypedData => ({
  domain: { name: 'USD Coin', version: '2', chainId: 31337, verifyingContract: TOKEN },
  types: {
    TransferWithAuthorization: [
      { name: 'from', type: 'address' },
      { name: 'to', type: 'address' },
      { name: 'value', type: 'uint256' },
      { name: 'validAfter', type: 'uint256' },
      { name: 'validBefore', type: 'uint256' },
      { name: 'nonce', type: 'bytes32' },
    ],
  },
  primaryType: 'TransferWithAuthorization',
  message: {
    from,
    to: PAYEE,
    value: String(AMOUNT),
    validAfter: '0',
    validBefore: String(SIGNED_AT_S + 300),
    nonce: `0x${'5a'.repeat(32)}`,
  },
})

/** 12 seconds before the signing. */
const TIME_S = SIGNED_AT_S - 12

/** Counts payments of a vault that paid before on the same day, as the enclave does. */
function count(spends: readonly Spend[], sequence: number): VaultBudget {
  const day = Math.floor(TIME_S / 86_400)
  const counters = [
    { window: day, spent: 3_000_000n },
    { window: 0, spent: 20_000_000n },
    { window: day - 1, spent: 500_000_000_000_000n },
  ]
  const verdict = countSpends(spending.budgets ?? [], counters, spends, TIME_S)
  if (!verdict.allowed) throw new Error('the golden payment is above a limit')
  const items = verdict.changes.map(({ before, after, ...change }) => ({
    ...change,
    before: String(before),
    after: String(after),
  }))
  return { time: TIME_S, sequence, isRepeated: false, items }
}

export type ApproveOptions = {
  /** The approvers, by their positions in the policy. */
  by?: readonly number[]
  expiresMs?: number
  /** Differences from the vault's request. */
  request?: Partial<SimulatedApprovalRequest>
  changes?: AssertionChanges
}

/** Approves with the policy's passkeys, for an hour, or with its agents' keys, for a minute. */
export function approveWith({ approvers: named }: Policy, options: ApproveOptions = {}) {
  const { by = [0], expiresMs, request: other, changes } = options
  return (request: SimulatedApprovalRequest): Approval[] =>
    by.map((place) => {
      const agent = agents.find(({ approver }) => approver.publicKey === named[place]?.publicKey)
      const until = expiresMs ?? SIGNED_AT_MS + (agent === undefined ? HOUR_MS : 60_000)
      if (agent !== undefined) return agent.approve({ ...request, ...other, expiresMs: until }, place)
      const passkey = passkeys.find(({ approver }) => approver.publicKey === named[place]?.publicKey)
      if (passkey === undefined) throw new Error('not a passkey of the policy')
      return passkey.approve({ ...request, ...other, expiresMs: until }, place, changes)
    })
}

type Golden = { signing: SimulatedSigning } & Pick<
  SimulatedAttestationOptions,
  'vault' | 'log' | 'txMetadata' | 'settings' | 'clientKey'
>

const byAgent = { policy: spending, approve: approveWith(spending, { by: [1] }), rule: agentRule, isSessionless: true }

/** The contents of the golden receipts of vaults and addresses. */
export const goldenVaults: Readonly<
  Record<
    | 'transaction'
    | 'scheduled'
    | 'off-chain'
    | 'address'
    | 'wallet-address'
    | 'transfer'
    | 'eip3009'
    | 'revocation'
    | 'bound',
    Golden
  >
> = {
  transaction: { signing: { kind: 'transaction' }, vault: { policy: approved, approve: approveWith(approved) } },
  scheduled: { signing: { kind: 'transaction' }, vault: { policy: scheduled } },
  'off-chain': { signing: { kind: 'typed-data' }, vault: { policy: approved, approve: approveWith(approved) } },
  address: { signing: { kind: 'address' }, vault: { policy: approved } },
  'wallet-address': { signing: { kind: 'address' } },
  transfer: {
    signing: { kind: 'transaction' },
    txMetadata: transfer,
    vault: { ...byAgent, budget: count([tokens, fee], 7) },
    log: budgetLog,
  },
  eip3009: {
    signing: { kind: 'typed-data', content: toAuthorization },
    vault: { ...byAgent, budget: count([tokens], 8) },
    log: budgetLog,
  },
  revocation: {
    signing: { kind: 'revocation', key: agentKeys[0] ?? '' },
    vault: { policy: spending, approve: approveWith(spending), isSessionless: true },
    log: budgetLog,
  },
  bound: {
    signing: { kind: 'transaction' },
    vault: { policy: approved, approve: approveWith(approved) },
    settings: { sessions: 'bound' },
    clientKey: `04${'ab'.repeat(64)}`,
  },
}
