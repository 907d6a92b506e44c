import { assertApprovals, VaultPolicyError } from '@countersign/policy'
import { type Approval, type Hex, isAddress, isPlainObject, isPrefixedHex } from '@countersign/protocol'
import { invalidRequest } from '../errors.ts'

/** Which wallet is to sign, and who approves. */
export type ParsedWalletUse = { wallet: Hex | undefined; approvals: readonly Approval[] | undefined }

/** Takes `wallet` and `approvals` out of the body of a signing; the rest is what is to be signed. */
export function parseWalletUse(body: unknown): ParsedWalletUse & { rest: unknown } {
  if (!isPlainObject(body)) return { rest: body, wallet: undefined, approvals: undefined }
  const { wallet, approvals, ...rest } = body
  if (wallet === undefined && approvals !== undefined) throw invalidRequest('approvals are for a vault')
  return { rest, wallet: parseWallet(wallet), approvals: parseApprovals(approvals) }
}

export function parseWallet(value: unknown, member = 'wallet'): Hex | undefined {
  if (value === undefined) return undefined
  if (!isPrefixedHex(value, 20)) throw invalidRequest(`${member} is not an address`)
  if (!isAddress(value)) throw invalidRequest(`${member} has a wrong address checksum (EIP-55)`)
  return value.toLowerCase() as Hex
}

/** An empty list is none. */
function parseApprovals(value: unknown): readonly Approval[] | undefined {
  if (value === undefined) return undefined
  try {
    assertApprovals(value)
  } catch (error) {
    if (!(error instanceof VaultPolicyError)) throw error
    throw invalidRequest(`approvals: ${error.details}`)
  }
  return value.length === 0 ? undefined : value
}
