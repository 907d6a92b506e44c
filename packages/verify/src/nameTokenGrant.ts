import { isPlainObject, type TypedData } from '@countersign/protocol'
import { toPrintable } from './toPrintable.ts'

type Members = Readonly<Record<string, unknown>>
export type Grant = {
  title: string
  sentence: string
  /** The effects that a holder of the signature can cause. */
  warnings: readonly string[]
}

/**
 * Recognises typed data that moves tokens by its primary type. Token contracts check a hash that includes this name, so other names can't
 * move tokens. Missing members are shown as unknown.
 */
export function nameTokenGrant({ primaryType, domain, message }: TypedData, wallet: string): Grant | undefined {
  const token = show(domain.verifyingContract)
  switch (primaryType) {
    case 'Permit':
      return namePermit(message, token, wallet)
    case 'PermitSingle':
    case 'PermitBatch':
      return nameAllowances(message)
    case 'PermitTransferFrom':
    case 'PermitBatchTransferFrom':
    case 'PermitWitnessTransferFrom':
    case 'PermitBatchWitnessTransferFrom':
      return warn('Permit2: a token transfer', [
        ...toList(message.permitted).map(
          (permitted) =>
            `Anyone with the signature lets ${show(message.spender)} take ${showAmount(permitted.amount)} of the token ${show(permitted.token)} from this wallet, once${showDeadline(message.deadline)}.`,
        ),
      ])
    case 'TransferWithAuthorization':
    case 'ReceiveWithAuthorization':
      return warn('A token transfer (EIP-3009)', [
        `Anyone with the signature can move ${showAmount(message.value)} of the token ${token} from this wallet to ${show(message.to)}${showDeadline(message.validBefore)}.`,
        ...warnOfOther(message.from, wallet),
      ])
    case 'CancelAuthorization':
      if (!hasOnly(message, ['authorizer', 'nonce'])) return undefined
      return {
        title: 'Cancellation of a token transfer (EIP-3009)',
        sentence: 'It cancels an earlier authorization.',
        warnings: warnOfOther(message.authorizer, wallet),
      }
    default:
      return undefined
  }
}

/** EIP-2612, and DAI's older form, which allows any amount or nothing. */
function namePermit(message: Members, token: string, wallet: string): Grant {
  const spender = show(message.spender)
  const others = warnOfOther(message.owner ?? message.holder, wallet)
  const isOfDai = message.allowed !== undefined
  const isWithdrawn = isOfDai
    ? message.allowed === false && hasOnly(message, ['holder', 'spender', 'nonce', 'expiry', 'allowed'])
    : toInteger(message.value) === 0n && hasOnly(message, ['owner', 'spender', 'value', 'nonce', 'deadline'])
  if (isWithdrawn) return withdraw('Permit: removal of a token allowance (EIP-2612)', others)
  const amount = isOfDai ? 'any amount' : showAmount(message.value)
  // Dai.permit: an expiry of zero means that the permit never expires.
  const isEndless = message.deadline === undefined && toInteger(message.expiry) === 0n
  const until = isEndless ? ' permanently' : showDeadline(message.deadline ?? message.expiry)
  return warn('Permit: a token allowance (EIP-2612)', [
    `Anyone with the signature lets ${spender} take ${amount} of the token ${token} from this wallet. The signature is valid${until || ' permanently'}. The allowance stays until it is used or changed.`,
    ...others,
  ])
}

/** Permit2's PermitSingle and PermitBatch. An amount of zero removes an allowance. */
function nameAllowances(message: Members): Grant {
  const details = toList(message.details)
  const spender = show(message.spender)
  const isEnd = (detail: Members) =>
    toInteger(detail.amount) === 0n && hasOnly(detail, ['token', 'amount', 'expiration', 'nonce'])
  const given = details.filter((detail) => !isEnd(detail))
  const isWithdrawn = details.length > 0 && given.length === 0
  if (isWithdrawn && hasOnly(message, ['details', 'spender', 'sigDeadline'])) {
    return withdraw('Permit2: removal of a token allowance', [])
  }
  return warn(
    'Permit2: a token allowance',
    given.map(
      ({ amount, token, expiration }) =>
        `Anyone with the signature lets ${spender} take ${showAmount(amount)} of the token ${show(token)} from this wallet${showExpiration(expiration)}.`,
    ),
  )
}

/** Other contracts may give meaning to members that the standard lacks. Only the standard form is harmless. */
function hasOnly(members: Members, names: readonly string[]): boolean {
  return Object.keys(members).every((name) => names.includes(name))
}

function withdraw(title: string, warnings: readonly string[]): Grant {
  return { title, sentence: 'It gives no access to tokens. It sets an allowance to zero.', warnings }
}

function warn(title: string, warnings: readonly string[]): Grant {
  const unnamed = 'Anyone with the signature can take tokens from this wallet.'
  return {
    title,
    sentence: 'It gives access to tokens, without a transaction by this wallet.',
    warnings: warnings.length === 0 ? [unnamed] : warnings,
  }
}

function warnOfOther(owner: unknown, wallet: string): string[] {
  const isOwn = typeof owner === 'string' && owner.toLowerCase() === wallet.toLowerCase()
  return isOwn ? [] : [`It is for another owner than this wallet: ${show(owner)}.`]
}

/** One entry or a list of them. */
function toList(value: unknown): Members[] {
  return (Array.isArray(value) ? value : [value]).filter(isPlainObject)
}

function show(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? toPrintable(String(value)) : 'an unknown address'
}

/** In the token's smallest unit, because only its contract knows the decimals. */
function showAmount(value: unknown): string {
  const amount = toInteger(value)
  if (amount === undefined) return 'an unknown amount'
  // Contracts use the largest number of 256 bits, or of Permit2's 160 bits, as "no limit".
  return amount >= 2n ** 160n - 1n ? 'an unlimited amount' : `${amount} smallest units`
}

function showDeadline(value: unknown): string {
  const seconds = toInteger(value)
  if (seconds === undefined) return ''
  const date = new Date(Number(seconds) * 1000)
  return Number.isNaN(date.getTime()) ? ' permanently' : ` until ${date.toISOString()}`
}

/** Permit2, Allowance.updateAmountAndExpiration: zero means the time of the block. */
function showExpiration(value: unknown): string {
  return toInteger(value) === 0n ? ', only in the block that uses the signature' : showDeadline(value)
}

function toInteger(value: unknown): bigint | undefined {
  const isNumber = typeof value === 'string' && /^(?:0x[0-9a-fA-F]{1,64}|\d{1,78})$/.test(value)
  if (typeof value === 'bigint') return value
  return isNumber || Number.isSafeInteger(value) ? BigInt(value as string | number) : undefined
}
