import { createSimulatedSatellite } from '@countersign/attestation/simulator'
import { createPolicy, type Policy, type TransactionRule } from '@countersign/policy'
import type { Approval, Hex } from '@countersign/protocol'
import { type AssertionChanges, createPasskey, type Passkey } from '../../policy/test/passkey.ts'
import type { SimulatedApprovalRequest, SimulatedAttestationOptions, SimulatedSigning } from '../src/simulator/index.ts'

/* Vaults with rules for the simulator's signatures, and their passkeys. */

const ETHER = 10n ** 18n

/** The simulator's signing time for them. */
const SIGNED_AT_MS = Date.parse('2026-06-15T12:00:00.123Z')
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

export type ApproveOptions = {
  /** The approvers, by their positions in the policy. */
  by?: readonly number[]
  expiresMs?: number
  /** Differences from the vault's request. */
  request?: Partial<SimulatedApprovalRequest>
  changes?: AssertionChanges
}

/** Approves with the policy's passkeys, for an hour. */
export function approveWith({ approvers: named }: Policy, options: ApproveOptions = {}) {
  const { by = [0], expiresMs = SIGNED_AT_MS + HOUR_MS, request: other, changes } = options
  return (request: SimulatedApprovalRequest): Approval[] =>
    by.map((place) => {
      const passkey = passkeys.find(({ approver }) => approver.publicKey === named[place]?.publicKey)
      if (passkey === undefined) throw new Error('not a passkey of the policy')
      return passkey.approve({ ...request, ...other, expiresMs }, place, changes)
    })
}

type Golden = { signing: SimulatedSigning; vault?: NonNullable<SimulatedAttestationOptions['vault']> }

/** The contents of the golden receipts of vaults and addresses. */
export const goldenVaults: Readonly<
  Record<'transaction' | 'scheduled' | 'off-chain' | 'address' | 'wallet-address', Golden>
> = {
  transaction: { signing: { kind: 'transaction' }, vault: { policy: approved, approve: approveWith(approved) } },
  scheduled: { signing: { kind: 'transaction' }, vault: { policy: scheduled } },
  'off-chain': { signing: { kind: 'typed-data' }, vault: { policy: approved, approve: approveWith(approved) } },
  address: { signing: { kind: 'address' }, vault: { policy: approved } },
  'wallet-address': { signing: { kind: 'address' } },
}
