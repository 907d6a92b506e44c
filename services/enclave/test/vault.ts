import { checkPolicy, hashPolicy, type Policy, type TimedSample, toPolicyBytes } from '@countersign/policy'
import {
  type ApprovalKind,
  fromHex,
  hashUnsignedTransaction,
  type LogSetting,
  type SignItem,
  type TxMetadata,
  toHex,
  toPrefixedHex,
} from '@countersign/protocol'
import { isEd25519Signature } from '@countersign/service/ed25519'
import { type AssertionChanges, createPasskey } from '../../../packages/policy/test/passkey.ts'
import { alice, limited, passkeys } from '../../../packages/policy/test/policies.ts'
import { createGrant, toSidHash } from '../src/grant/grant.ts'
import { createKeyring, toOwner } from '../src/keys/deriveKey.ts'
import { signItem } from '../src/sign/signItem.ts'
import { createVerifyEs256 } from '../src/vault/es256.ts'
import { createPolicies } from '../src/vault/policies.ts'
import { noBudgets } from './noBudgets.ts'
import { createWitness } from './witness.ts'

/* A user with a session, vaults and the passkeys that approve. */

export const now = Date.parse('2026-06-15T12:00:00.123Z')
const coordinatorKey = 'cd'.repeat(32)
export const implementation = `0x${'77'.repeat(20)}` as const
const rootSecret = Uint8Array.from({ length: 32 }, (_, index) => index + 1)
export const keyring = createKeyring(rootSecret, new Uint8Array(32).fill(0xcc))
/** Longer than an approval, so that either can expire first. */
export const SESSION_MS = 120_000
const sid = 'ab'.repeat(32)
const signatures = { verifyEs256: createVerifyEs256(), verifyEd25519: isEd25519Signature }
const random = (length: number) => new Uint8Array(length).fill(5)

/** A session of a user, which needs stamps if it has a client key. */
export function openSession(subject: string, clientKey: string | null = null) {
  const identity = { issuer: 'https://issuer.example', subject, email: null }
  const owner = toOwner(identity)
  const { keyId, address } = keyring.describe(owner)
  const exp = now + SESSION_MS
  return {
    owner,
    identity,
    keyId,
    address,
    grant: createGrant(keyring.grantKey, {
      owner,
      identity,
      clientKey,
      sidHash: toSidHash(sid),
      keyId,
      address,
      exp,
    }),
  }
}

export type TestVault = ReturnType<typeof createVault>

export function createVault({ owner, grant }: ReturnType<typeof openSession>, policy: Policy = limited) {
  const hash = toHex(hashPolicy(policy))
  const { keyId, address } = keyring.describe({ owner, policy: hash })
  const text = new TextDecoder().decode(toPolicyBytes(policy))
  const granted = { sid, grant, keyId, witness: createWitness(now), vault: { policy: hash } }
  return { policy, hash, text, keyId, address, granted }
}

/** The rule that allows a transaction with the fewest approvals, or the one that comes nearest. */
export function findRule(policy: Policy, txMetadata: TxMetadata): number {
  const verdict = checkPolicy(policy, { kind: 'transaction', txMetadata })
  return (verdict.allowed ? verdict.rule : verdict.nearest) ?? 0
}

/** A payment that `limited` allows without approval. */
export const payment: TxMetadata = {
  chainId: 1,
  nonce: 7,
  to: alice,
  value: '1000',
  data: '0x',
  gas: '21000',
  maxFeePerGas: '2000000000',
  maxPriorityFeePerGas: '1000000000',
}

/** A payment that needs an approval. */
export const large: TxMetadata = { ...payment, value: String(10n ** 18n) }

export function toTransaction(
  { granted, policy }: TestVault,
  txMetadata: TxMetadata,
  rule = findRule(policy, txMetadata),
) {
  const digest = toPrefixedHex(hashUnsignedTransaction(txMetadata))
  const vault = { ...granted.vault, rule }
  return { ...granted, vault, kind: 'transaction', statementVersion: 2, digest, txMetadata } as const
}

/** The first rule for this kind that needs approvals, or 0. */
function findApprovedRule({ rules }: Policy, kind: ApprovalKind): number {
  return Math.max(
    0,
    rules.findIndex((rule) => rule.kind === kind && rule.approvals > 0),
  )
}

/** An approval by the passkey at an index of the policy's approvers. */
export function approve(
  { policy, hash, address }: Pick<TestVault, 'policy' | 'hash' | 'address'>,
  {
    digest,
    kind = 'transaction',
    rule = findApprovedRule(policy, kind),
    approver = 0,
    expiresMs = now + 60_000,
    changes = {},
  }: {
    digest: string
    kind?: ApprovalKind
    rule?: number
    approver?: number
    expiresMs?: number
    changes?: AssertionChanges
  },
) {
  const passkey = passkeys.find((one) => one.approver.publicKey === policy.approvers[approver]?.publicKey)
  const request = {
    vaultAddress: address,
    policyHash: fromHex(hash),
    rule,
    kind,
    digest: fromHex(digest.slice(2)),
    expiresMs,
  }
  return (passkey ?? createPasskey({ seed: 9, rpId: 'vault.example' })).approve(request, approver, changes)
}

/** Handles an item like the key worker. No policy is remembered, like after a start. */
export function sign(
  item: SignItem,
  rules?: { policy: string; sample?: TimedSample },
  { at = now, log = null }: { at?: number; log?: LogSetting | null } = {},
) {
  const policies = createPolicies({ log })
  const deps = { keyring, now: at, random, implementations: [implementation], policies, ...signatures, ...noBudgets }
  return signItem(deps, item, { coordinatorKey, rules: rules && { sample: undefined, ...rules } })
}
