import { type Hex, quicknet, toHex } from '@countersign/protocol'
import { ed25519 } from '@noble/curves/ed25519.js'
import { createPolicy } from '../src/assertPolicy.ts'
import type { Policy, SpendRule, TimeSource, TransactionRule } from '../src/policy.ts'
import { X402_SPENDERS } from '../src/readSpend.ts'
import { createAgent } from './agentKey.ts'
import { createPasskey, type Passkey } from './passkey.ts'

/* One test policy of each usual shape. */

const toAddress = (byte: string): Hex => `0x${byte.repeat(20)}`

export const [alice, bob, token] = ['a1', 'b0', '70'].map(toAddress) as [Hex, Hex, Hex]

export const ETHER = 10n ** 18n

export const passkeys: readonly Passkey[] = [1, 2, 3].map((seed) => createPasskey({ seed, rpId: 'vault.example' }))

export const satellite: TimeSource = { kind: 'satellite', key: toKey(1) }
export const beacon: TimeSource = { kind: 'drand', ...quicknet }

/** The public half of a published test key, with all bytes equal. */
export function toKey(byte: number): string {
  return toHex(ed25519.getPublicKey(new Uint8Array(32).fill(byte)))
}

export const payment: TransactionRule = {
  kind: 'transaction',
  chainIds: [1],
  to: [alice, bob, toAddress('c2')],
  maxValueWei: String(ETHER / 10n),
  maxFeeWei: String(ETHER / 100n),
  approvals: 0,
  approvers: 'any',
}

/** ERC-20 `transfer(address,uint256)` to two people, at most 500 of six decimals. */
export const tokenTransfer: TransactionRule = {
  kind: 'transaction',
  chainIds: [1],
  to: [token],
  maxValueWei: '0',
  maxFeeWei: String(ETHER / 100n),
  selectors: ['0xa9059cbb'],
  words: 2,
  arguments: [
    { at: 0, type: 'address', oneOf: [alice, bob] },
    { at: 1, type: 'uint256', max: '500000000' },
  ],
  approvals: 0,
  approvers: 'any',
}

const approvers = passkeys.map(({ approver }) => approver)

/** A limit for each payment, and approval above it. */
export const limited: Policy = createPolicy({
  version: 1,
  log: null,
  approvers: approvers.slice(0, 2),
  rules: [payment, { ...payment, maxValueWei: String(2n ** 256n - 1n), approvals: 1 }],
})

/** All features of a policy without a schedule. */
export const full: Policy = createPolicy({
  version: 1,
  log: { witnesses: [1, 2, 3].map(toKey), quorum: 2 },
  approvers,
  rules: [
    payment,
    tokenTransfer,
    { ...payment, chainIds: 'any', to: 'any', maxValueWei: String(5n * ETHER), approvals: 2 },
    { kind: 'message', approvals: 1, approvers: 'any' },
    {
      kind: 'typed-data',
      domains: [{ name: 'Permits', version: '1', chainId: 1, verifyingContract: token }, { name: 'Mail' }],
      primaryTypes: ['Mail', 'Permit'],
      approvals: 1,
      approvers: 'any',
    },
    { kind: 'typed-data', domains: 'any', primaryTypes: 'any', approvals: 3, approvers: 'any' },
  ],
})

/** An agent that pays ten times a day, from 2027 on. */
export const scheduled: Policy = createPolicy({
  version: 1,
  time: [satellite, beacon],
  log: null,
  approvers: approvers.slice(0, 1),
  schedule: { startsAtMs: Date.UTC(2027, 0, 1), everyS: 86_400, count: 10 },
  rules: [payment, { ...payment, to: 'any', approvals: 1 }],
})

export const agent = createAgent(9)

/** Payments that an agent approves. Its approvers are those of `budgeted` as written here, where it is the second. */
export const spend: SpendRule = {
  kind: 'spend',
  chainIds: [1],
  payees: [alice, bob],
  forms: ['coin', 'eip3009', 'transfer', 'x402-permit2'],
  spenders: X402_SPENDERS as Hex[],
  approvals: 1,
  approvers: [1],
  session: false,
}

/** An agent with ten of a token per day and a hundred in all, and a passkey for everything else. */
export const budgeted: Policy = createPolicy({
  version: 1,
  log: { origin: 'log.vault.example/1', witnesses: [1, 2, 3].map(toKey), quorum: 2 },
  approvers: [...approvers.slice(0, 1), agent.approver],
  budgets: [
    { chainId: 1, token, limit: '10000000', periodS: 86_400 },
    { chainId: 1, token, limit: '100000000', periodS: 0 },
    { chainId: 1, token: null, limit: String(ETHER / 100n), periodS: 3_600 },
  ],
  rules: [
    spend,
    { ...payment, to: 'any', approvals: 1, approvers: [0] },
    { kind: 'message', approvals: 1, approvers: [0] },
    { kind: 'typed-data', domains: 'any', primaryTypes: 'any', approvals: 1, approvers: [0] },
  ],
})
