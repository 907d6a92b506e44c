import {
  fromHex,
  type Hex,
  isPlainObject,
  type RuleReason,
  type TxMetadata,
  type TypedData,
} from '@countersign/protocol/core'
import { decodeWord } from './abiWord.ts'
import { compareCanonical } from './canonicalOrder.ts'
import type { SpendForm, SpendRule } from './policy.ts'

/** An amount that a request pays. `token` null is the chain's coin. */
export type Spend = { chainId: number; token: Hex | null; amount: bigint }

/** What the rules of kind `spend` need to know besides the request. */
export type SpendContext = {
  /** The vault that pays, in lower case. */
  vaultAddress: Hex
  /** The signing time. */
  nowMs: number
}

/** x402's contract for exact payments by Permit2 (coinbase/x402, `contracts/evm`). It enforces the payee that the witness names. */
export const X402_SPENDERS: readonly string[] = ['0x402085c248eea27d92e8b30b2c58ed07f9e20001']

/** Uniswap's Permit2 has this address on every chain. */
const PERMIT2 = '0x000000000022d473030f116ddee9f6b43ac78ba3'

/** `transfer(address,uint256)` of ERC-20. */
const TRANSFER = '0xa9059cbb'
const TRANSFER_DIGITS = 2 + 2 * 68

/** How long an authorization of a token may stay valid after it was signed. */
const MAX_VALID_S = 3_600

const toMembers = (text: string) =>
  text.split(',').map((member) => {
    const [type, name] = member.split(' ')
    return { name, type }
  })

/** EIP-3009. */
const EIP3009 = {
  TransferWithAuthorization: toMembers(
    'address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce',
  ),
}

/** Permit2's `PermitWitnessTransferFrom` with the witness of x402. */
const X402_PERMIT2 = {
  PermitWitnessTransferFrom: toMembers(
    'TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness',
  ),
  TokenPermissions: toMembers('address token,uint256 amount'),
  Witness: toMembers('address to,uint256 validAfter'),
}

type Payment = {
  form: SpendForm
  chainId: bigint
  payee: string
  spends: Spend[]
  /** Reasons of the form itself. */
  reasons: RuleReason[]
  spender?: string
}

/** The requests that can pay. */
export type SpendRequest = { kind: 'transaction'; txMetadata: TxMetadata } | { kind: 'typed-data'; content: TypedData }

/**
 * The amounts that a request pays, if the rule allows it. The request has been parsed and hashed, so its values have the types that it states
 * for them.
 */
export function readSpend(
  rule: SpendRule,
  request: SpendRequest,
  context: SpendContext,
): { spends: readonly Spend[] } | { reasons: RuleReason[] } {
  const payment =
    request.kind === 'transaction' ? readTransaction(request.txMetadata) : readTypedData(request.content, context)
  if (payment === undefined || !rule.forms.includes(payment.form)) return { reasons: [{ code: 'form_not_allowed' }] }
  const { chainId, payee, spender, spends, reasons } = payment
  if (!rule.chainIds.some((allowed) => BigInt(allowed) === chainId)) reasons.push({ code: 'chain_not_allowed' })
  if (rule.payees !== 'any' && !rule.payees.some((allowed) => allowed === payee)) {
    reasons.push({ code: 'recipient_not_allowed' })
  }
  if (spender !== undefined && !rule.spenders?.some((allowed) => allowed === spender)) {
    reasons.push({ code: 'spender_not_allowed' })
  }
  return reasons.length > 0 ? { reasons } : { spends }
}

function readTransaction({ chainId, to, value, data, gas, maxFeePerGas }: TxMetadata): Payment | undefined {
  const fee = BigInt(gas) * BigInt(maxFeePerGas)
  const pay = (form: SpendForm, payee: string, spends: Spend[]) => ({
    form,
    chainId: BigInt(chainId),
    payee,
    spends,
    reasons: [],
  })
  if (data === '0x') return pay('coin', to, [{ chainId, token: null, amount: BigInt(value) + fee }])
  if (value !== '0' || data.length !== TRANSFER_DIGITS || !data.startsWith(TRANSFER)) return undefined
  const [payee, amount] = [
    decodeWord('address', fromHex(data.slice(10, 74))),
    decodeWord('uint256', fromHex(data.slice(74))),
  ]
  if (payee === undefined || amount === undefined) return undefined
  const spends: Spend[] = [{ chainId, token: to, amount: BigInt(amount) }]
  if (fee > 0n) spends.push({ chainId, token: null, amount: fee })
  return pay('transfer', String(payee), spends)
}

function readTypedData(content: TypedData, { vaultAddress, nowMs }: SpendContext): Payment | undefined {
  const { domain, message, primaryType } = content
  const { chainId, verifyingContract } = domain
  const nowS = BigInt(Math.floor(nowMs / 1000))
  /** Reasons why the authorization isn't valid now, or is for too long. */
  const checkTimes = (after: unknown, before: unknown): RuleReason[] =>
    toInteger(after) > nowS || toInteger(before) > nowS + BigInt(MAX_VALID_S) ? [{ code: 'validity_not_allowed' }] : []

  if (primaryType === 'TransferWithAuthorization') {
    if (!hasTypes(content, EIP3009) || !hasMembers(domain, ['chainId', 'name', 'verifyingContract', 'version'])) {
      return undefined
    }
    const reasons = checkTimes(message.validAfter, message.validBefore)
    if (toAddress(message.from) !== vaultAddress) reasons.push({ code: 'payer_not_vault' })
    const token = toAddress(verifyingContract)
    const spend = { chainId: Number(toInteger(chainId)), token, amount: toInteger(message.value) }
    return { form: 'eip3009', chainId: toInteger(chainId), payee: toAddress(message.to), spends: [spend], reasons }
  }
  if (primaryType !== 'PermitWitnessTransferFrom' || !hasTypes(content, X402_PERMIT2)) return undefined
  const isPermit2 = hasMembers(domain, ['chainId', 'name', 'verifyingContract']) && domain.name === 'Permit2'
  if (!isPermit2 || toAddress(verifyingContract) !== PERMIT2) return undefined
  const { permitted, witness, deadline } = message as Record<string, Record<string, unknown>>
  const token = toAddress(permitted?.token)
  return {
    form: 'x402-permit2',
    chainId: toInteger(chainId),
    payee: toAddress(witness?.to),
    spender: toAddress(message.spender),
    spends: [{ chainId: Number(toInteger(chainId)), token, amount: toInteger(permitted?.amount) }],
    reasons: checkTimes(witness?.validAfter, deadline),
  }
}

/** Whether the types are exactly these, apart from the domain's, which hashing has compared with the domain. */
function hasTypes({ types }: TypedData, expected: Record<string, unknown>): boolean {
  const { EIP712Domain: _, ...given } = types
  return compareCanonical(given, expected) === 0
}

function hasMembers(value: Record<string, unknown>, names: readonly string[]): boolean {
  return isPlainObject(value) && Object.keys(value).toSorted().join() === names.join()
}

function toAddress(value: unknown): Hex {
  return String(value).toLowerCase() as Hex
}

/** Typed data have integers as decimals, hex or numbers. */
function toInteger(value: unknown): bigint {
  return BigInt(value as string | number)
}
