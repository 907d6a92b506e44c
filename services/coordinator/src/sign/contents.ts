import {
  type AnyWitness,
  type Approval,
  type Authorization,
  assertOpening,
  computeCommitment,
  equalBytes,
  type Hex,
  isLowerPrefixedHex,
  type OffChainContent,
  type OffChainItem,
  type Opening,
  pickContent,
  type Signed,
  type SignedStatement,
  type SignItem,
  type Stamp,
  type StatementV2,
  type TxMetadata,
  toCanonicalJson,
  toHex,
  type VaultBudget,
  vaultBudget,
} from '@countersign/protocol'
import { parse } from '@countersign/protocol/schema'
import { invalidAnswer } from '../errors.ts'
import type { StoredPolicy } from '../store/vaults.ts'

/* Everything that depends on the kind of a signature: the request, the item for the enclave, and the expected subject. */

/** The parsed content to sign. `digest` is the hash of the other members. */
export type SignContent = { digest: Hex } & (
  | { kind: 'transaction'; txMetadata: TxMetadata }
  | { kind: 'authorization'; authorization: Authorization }
  | OffChainContent
  /** A statement about the wallet's address, and the commitment to its owner. `digest` is the hash of its subject. */
  | { kind: 'address'; owner: string }
  /** Revokes the key of an agent. `digest` is the hash of its subject, too. */
  | { kind: 'revocation'; key: string }
)

/** A session, or for a vault only SHA-256(iss ‖ 0x00 ‖ sub) of its owner, if its rules need no session. */
export type Access =
  | { sid: string; grant: string; owner?: undefined }
  | { owner: string; sid?: undefined; grant?: undefined }

type Request = Access & {
  keyId: string
  vault?: { policy: StoredPolicy; rule?: number | undefined; approvals?: readonly Approval[] | undefined } | undefined
  stamp?: Stamp | undefined
  content: SignContent
}

/** The item to send to the enclave. Statements of version 1 do not support vaults. */
export function toSignItem(
  { sid, grant, owner, keyId, vault, stamp, content }: Request,
  { sample, receiptVersion }: { sample: AnyWitness; receiptVersion: 1 | 2 },
): SignItem {
  const { rule, approvals } = vault ?? {}
  const use = vault && {
    vault: { policy: vault.policy.hash, ...(rule !== undefined && { rule }), ...(approvals && { approvals }) },
  }
  const access = owner === undefined ? { sid, grant } : { owner }
  const granted = { ...access, keyId, ...use, ...(stamp && { stamp }), witness: sample }
  switch (content.kind) {
    case 'transaction': {
      const { kind, digest, txMetadata } = content
      return { kind, statementVersion: vault === undefined ? receiptVersion : 2, ...granted, digest, txMetadata }
    }
    case 'authorization':
      return { kind: content.kind, ...granted, authorization: content.authorization }
    case 'address':
      return { kind: content.kind, ...granted }
    case 'revocation':
      return { kind: content.kind, ...granted, key: content.key }
    default:
      return { ...granted, ...pickContent(content) }
  }
}

/** The subject's members are in the order of canonical JSON. */
type SignedAs = { signed: Signed; signature: Hex | undefined; opening?: Opening }

/** Builds the subject of a statement of version 2 from the request, and from the values that only the enclave knows. */
export function toSigned(
  { item, address, content }: { item: SignItem; address: Hex; content: SignContent },
  result: SignedStatement,
  { signedAt }: StatementV2,
): SignedAs {
  const subject: object = 'subject' in result ? result.subject : {}
  const { digest } = content
  switch (item.kind) {
    case 'transaction': {
      const { chainId, to, nonce, value, data, gas, maxFeePerGas, maxPriorityFeePerGas } = item.txMetadata
      const signature = readHex(subject, 'signature', 65)
      return {
        signed: {
          kind: 'transaction',
          subject: {
            ...readBudget(subject),
            chainId,
            data: data.toLowerCase() as Hex,
            digestSigned: digest,
            from: address,
            gas,
            maxFeePerGas,
            maxPriorityFeePerGas,
            nonce,
            signature,
            signedAt,
            to: to.toLowerCase() as Hex,
            txHash: readHex(subject, 'txHash', 32),
            value,
          },
        },
        signature,
      }
    }
    case 'authorization': {
      const { chainId, address, nonce } = item.authorization
      const signature = readHex(subject, 'signature', 65)
      return { signed: { kind: 'authorization', subject: { address, chainId, digest, nonce, signature } }, signature }
    }
    case 'address': {
      const owner = content.kind === 'address' ? content.owner : ''
      const subject = { address, owner, policy: item.vault?.policy ?? null }
      return { signed: { kind: 'address', subject }, signature: undefined }
    }
    case 'revocation': {
      const subject = { address, key: item.key, policy: item.vault?.policy ?? '' }
      return { signed: { kind: 'revocation', subject }, signature: undefined }
    }
    default:
      return toOffChain(digest, item, 'opening' in result ? result.opening : undefined)
  }
}

/** Throws unless the opening matches the request exactly. The caller could not show any other opening. */
function toOffChain(digest: Hex, item: OffChainItem, opening: unknown): SignedAs {
  assertOpening(opening)
  const { content, signature } = opening
  if (typeof content === 'string' || typeof signature === 'string')
    throw invalidAnswer('a half of the opening is withheld')
  const isAsked =
    content.kind === item.kind &&
    content.digest === digest &&
    isSame(content.approvals, item.vault?.approvals) &&
    isSame(content.content, item.content)
  if (!isAsked) throw invalidAnswer('the opening is of other content')
  const subject = { commitment: toHex(computeCommitment(opening)) }
  return { signed: { kind: 'off-chain', subject }, signature: signature.signature, opening }
}

function isSame(left: unknown, right: unknown): boolean {
  if (left === undefined || right === undefined) return left === right
  return equalBytes(toCanonicalJson(left), toCanonicalJson(right))
}

/** What the payment was counted as, in the order of canonical JSON. Only the enclave knows it. */
function readBudget(subject: { budget?: unknown }): { budget?: VaultBudget } {
  if (subject.budget === undefined) return {}
  const budget = parse(vaultBudget, subject.budget, (details) => invalidAnswer(`budget: ${details}`))
  return { budget: JSON.parse(Buffer.from(toCanonicalJson(budget)).toString()) }
}

function readHex(subject: object, name: string, bytes: number): Hex {
  const value: unknown = Object.hasOwn(subject, name) ? subject[name as keyof typeof subject] : undefined
  if (!isLowerPrefixedHex(value, bytes)) throw invalidAnswer(`the subject has no ${name}`)
  return value
}
