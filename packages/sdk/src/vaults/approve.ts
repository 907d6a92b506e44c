import {
  type Approval,
  type ApprovalsVerdict,
  checkApprovals,
  describeApprovalsFault,
  verifyEs256,
} from '@countersign/policy'
import {
  type ApprovalKind,
  computeApprovalChallenge,
  fromHex,
  MAX_RULES,
  type PasskeyApproval,
  toHex,
  verifyEd25519,
} from '@countersign/protocol'
import { getOrigin, PASSKEY_TIMEOUT_MS, type PasskeyCredential, runCeremony, toDescriptor } from './createPasskey.ts'
import { createVaultError } from './errors.ts'
import { assertInTime, type Prepared, parsePrepared } from './prepared.ts'
import { toPolicyHash, type Vault } from './vault.ts'
import { hashKey } from './vaultCalls.ts'

export type ApproveOptions = {
  /** The passkeys to offer, as the app stored them. By default the user chooses among all of this site. */
  credentials?: readonly (Pick<PasskeyCredential, 'credentialId'> & Partial<PasskeyCredential>)[] | undefined
  /** For a page where approvers of two domains work. Defaults to the first in the policy. */
  rpId?: string | undefined
  signal?: AbortSignal | undefined
}

/**
 * Asks for a passkey to approve exactly this request. Needs no session. Show the user `content` of `parsePrepared`, not a description
 * from elsewhere. Call it in a click handler.
 *
 * @example
 * const prepared = parsePrepared(text)
 * const approval = await approve(prepared)
 */
export async function approve(input: Prepared, options?: ApproveOptions): Promise<PasskeyApproval> {
  // Approves the parsed copy.
  const prepared = parsePrepared(input)
  assertInTime(prepared, Date.now())
  return approveRequest(prepared, options)
}

/** How long the approval of a revocation is valid. */
const REVOCATION_MS = 10 * 60 * 1000

/**
 * Asks for a passkey of the vault to approve that an agent's key is revoked. Needs no session. Call it in a click handler.
 *
 * @example
 * await revokeKey(client, vault, publicKey, [await approveRevocation(vault, publicKey)])
 */
export async function approveRevocation(
  { address, policy }: Pick<Vault, 'address' | 'policy'>,
  publicKey: string,
  options?: ApproveOptions,
): Promise<PasskeyApproval> {
  const expiresMs = Date.now() + REVOCATION_MS
  const digest = hashKey(publicKey)
  const policyHash = toPolicyHash(policy)
  return approveRequest(
    { address, policy, policyHash, rule: MAX_RULES, kind: 'revocation', digest, expiresMs },
    options,
  )
}

/** What an approval covers. */
type Approvable = Pick<Prepared, 'address' | 'policy' | 'policyHash' | 'rule' | 'digest' | 'expiresMs'> & {
  kind: ApprovalKind
}

async function approveRequest(
  approvable: Approvable,
  { credentials = [], rpId: requestedRpId, signal }: ApproveOptions = {},
): Promise<PasskeyApproval> {
  const { rpId, approvers } = findApproversOfPage(approvable, getOrigin(), requestedRpId)
  const { address, policyHash, rule, kind, digest, expiresMs } = approvable
  const challenge = computeApprovalChallenge({
    vaultAddress: fromHex(address.slice(2)),
    policyHash: fromHex(policyHash),
    rule,
    kind,
    digest: fromHex(digest.slice(2)),
    expiresMs,
  })
  const allowCredentials = credentials.map(toDescriptor)
  const { response } = await runCeremony((container) =>
    container.get({
      publicKey: {
        challenge,
        rpId,
        userVerification: 'required',
        allowCredentials,
        timeout: PASSKEY_TIMEOUT_MS,
      },
      ...(signal && { signal }),
    }),
  )
  return findApprover(approvable, response as AuthenticatorAssertionResponse, approvers)
}

/** The indices of the rule's approvers whose passkeys work on this page, all of one domain. */
function findApproversOfPage(
  { policy, rule, kind }: Approvable,
  origin: string,
  requestedRpId: string | undefined,
): { rpId: string; approvers: readonly number[] } {
  // Every passkey may revoke a key.
  const listed = kind === 'revocation' ? 'any' : (policy.rules[rule]?.approvers ?? [])
  const approvers = policy.approvers.flatMap((approver, index) => {
    const isListed = listed === 'any' || listed.includes(index)
    return isListed && approver.type === 'passkey' ? { ...approver, index } : []
  })
  const here = approvers.filter(({ origins }) => origins.includes(origin))
  const rpId = requestedRpId ?? here[0]?.rpId
  const ofDomain = here.filter((approver) => approver.rpId === rpId).map(({ index }) => index)
  if (rpId !== undefined && ofDomain.length > 0) return { rpId, approvers: ofDomain }
  const pages = [...new Set(approvers.flatMap(({ origins }) => origins))]
  throw createVaultError('passkey_elsewhere', 'no approver of the vault works on this page', {
    details: pages.length === 0 ? 'no passkey can approve this' : `open ${pages.join(' or ')}`,
  })
}

/** An assertion doesn't name its approver, so try each key. */
function findApprover(
  approvable: Approvable,
  response: AuthenticatorAssertionResponse,
  approvers: readonly number[],
): PasskeyApproval {
  const [authenticatorData, clientDataJSON, signature] = [
    response.authenticatorData,
    response.clientDataJSON,
    response.signature,
  ].map((bytes) => toHex(new Uint8Array(bytes))) as [string, string, string]
  const { expiresMs } = approvable
  let fault: ApprovalsVerdict | undefined
  for (const approver of approvers) {
    const approval = { approver, authenticatorData, clientDataJSON, signature, expiresMs }
    const verdict = checkPreparedApprovals(approvable, [approval], { required: 1, nowMs: Date.now() })
    if (verdict.valid) return approval
    // Signed by another key, so try the next approver.
    if (verdict.reason !== 'approval_signature_invalid') fault ??= verdict
  }
  if (fault === undefined || fault.valid) {
    throw createVaultError('passkey_not_approver', 'this passkey is not an approver of the vault')
  }
  const details = describeApprovalsFault(fault)
  throw createVaultError('approval_invalid', 'the vault would reject this approval', { details })
}

/** `checkApprovals` for a prepared request. */
export function checkPreparedApprovals(
  { policy, address: vaultAddress, rule, kind, digest }: Omit<Approvable, 'policyHash' | 'expiresMs'>,
  approvals: readonly Approval[],
  { required, nowMs }: { required: number; nowMs: number },
): ApprovalsVerdict {
  const signed = { policy, vaultAddress, rule, kind, digest: fromHex(digest.slice(2)) }
  return checkApprovals({ verifyEs256, verifyEd25519 }, { ...signed, approvals, required, nowMs })
}
