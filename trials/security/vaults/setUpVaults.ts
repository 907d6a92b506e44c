import { createPolicy, type Policy, toPolicyBytes } from '@countersign/policy'
import {
  type ApprovalKind,
  fromHex,
  type Hex,
  type OpenSessionResponse,
  type PasskeyApproval,
  type TxMetadata,
  type VaultInfo,
} from '@countersign/protocol'
import { createTx, type TestUser, toDigest } from '@countersign/testing/stack'
import type { AssertionChanges, Passkey } from '../../../packages/policy/test/passkey.ts'
import { satelliteKey } from '../../../services/enclave/test/witness.ts'
import { createVault } from '../../createVault.ts'
import { createQuickPasskey } from '../../quickPasskey.ts'
import type { Target } from '../startTarget.ts'

/* Vaults to attack: those of an honest user and of an attacker. */

/** Payments up to this amount need no approval. */
export const THRESHOLD_WEI = 10n ** 17n
const HOUR_MS = 3_600_000

const [first, second, unknownPasskey] = [1, 2, 3].map((seed) =>
  createQuickPasskey({ seed, rpId: 'vault.example' }),
) as [Passkey, Passkey, Passkey]

export { unknownPasskey }

const payment = {
  kind: 'transaction',
  chainIds: 'any',
  to: 'any',
  maxFeeWei: String(10n ** 16n),
  approvers: 'any',
} as const
const ANY_VALUE = String(2n ** 256n - 1n)

/** Small payments without approval, larger ones with one of two passkeys. */
const limited = createPolicy({
  version: 1,
  log: null,
  approvers: [first.approver, second.approver],
  rules: [
    { ...payment, maxValueWei: String(THRESHOLD_WEI), approvals: 0 },
    { ...payment, maxValueWei: ANY_VALUE, approvals: 1 },
  ],
})

/** Rules without approvals, as a thief would prefer. */
const open = createPolicy({
  version: 1,
  log: null,
  approvers: [],
  rules: [{ ...payment, maxValueWei: ANY_VALUE, approvals: 0 }],
})

/** All payments need both passkeys. */
const twofold = createPolicy({
  version: 1,
  log: null,
  approvers: [first.approver, second.approver],
  rules: [{ ...payment, maxValueWei: ANY_VALUE, approvals: 2 }],
})

/** One payment a day, starting in 2100. */
const scheduled = createPolicy({
  version: 1,
  time: [{ kind: 'satellite', key: satelliteKey }],
  log: null,
  approvers: [],
  schedule: { startsAtMs: Date.UTC(2100, 0, 1), everyS: 86_400, count: 1 },
  rules: [{ ...payment, maxValueWei: ANY_VALUE, approvals: 0 }],
})

/** The index of the rule that limits no amount. */
export function findLargeRule({ rules }: Policy): number {
  return rules.findIndex((rule) => rule.kind === 'transaction' && rule.maxValueWei === ANY_VALUE)
}

/** The rules of the target: for payments up to the threshold, and for larger ones. */
export const largeRule = findLargeRule(limited)
export const smallRule = 1 - largeRule

export type AttackedVault = VaultInfo & {
  policy: Policy
  /** The policy in the form that the enclave accepts. */
  text: string
  keyId: string
}

export type Vaults = {
  /** Alice's vault, the target. */
  vault: AttackedVault
  /** Mallory's vault with the same rules. */
  twin: AttackedVault
  /** Alice's vault without approvals. */
  open: AttackedVault
  /** Alice's vault that needs two approvals. */
  twofold: AttackedVault
  /** Alice's vault that pays nothing before 2100. */
  scheduled: AttackedVault
}

/** Idempotent: returns the same vaults again. */
export async function setUpVaults({ alice, mallory, query }: Target): Promise<Vaults> {
  const create = async ({ post }: TestUser, policy: Policy): Promise<AttackedVault> => {
    const info = await createVault({ post, query }, policy)
    const [row] = await query(`select encode(kms_key_id, 'hex') as key from wallets where address = $1`, [
      Buffer.from(info.address.slice(2), 'hex'),
    ])
    return { ...info, policy, text: Buffer.from(toPolicyBytes(policy)).toString(), keyId: String(row?.key) }
  }
  return {
    vault: await create(alice, limited),
    twin: await create(mallory, limited),
    open: await create(alice, open),
    twofold: await create(alice, twofold),
    scheduled: await create(alice, scheduled),
  }
}

/** The parts of a session available to the operator: its secret from the cookie and its grant from the database. */
export async function readSession({ query }: Pick<Target, 'query'>, { cookie }: TestUser) {
  const sid = cookie.split('=')[1] ?? ''
  const [row] = await query(`select grant_token as grant from sessions where sid_hash = sha256(decode($1, 'hex'))`, [
    sid,
  ])
  if (row === undefined) throw new Error('session not found')
  return { sid, grant: String(row.grant) } satisfies Partial<OpenSessionResponse>
}

type ApproveParameters = {
  digest: Hex
  /** Index of the approver in the policy. */
  by?: number
  vault: Pick<AttackedVault, 'address' | 'policyHash' | 'policy'>
  rule?: number
  kind?: ApprovalKind
  expiresMs?: number
  passkey?: Passkey
  changes?: AssertionChanges
}

/** Creates an approval, by default of the first approver. */
export function approve({
  digest,
  vault,
  by = 0,
  rule = findLargeRule(vault.policy),
  kind = 'transaction',
  passkey,
  changes,
  ...rest
}: ApproveParameters): PasskeyApproval {
  const { expiresMs = Date.now() + HOUR_MS } = rest
  const owner = first.approver.publicKey === vault.policy.approvers[by]?.publicKey ? first : second
  const request = {
    vaultAddress: vault.address,
    policyHash: fromHex(vault.policyHash),
    rule,
    kind,
    digest: fromHex(digest.slice(2)),
    expiresMs,
  }
  return (passkey ?? owner).approve(request, by, changes)
}

/** A payment with a random nonce, so that it wasn't requested before. */
export function createPayment(valueWei: bigint): { txMetadata: TxMetadata; digest: Hex } {
  const txMetadata = createTx(Math.floor(Math.random() * 2 ** 48), { value: String(valueWei) })
  return { txMetadata, digest: toDigest(txMetadata) }
}
