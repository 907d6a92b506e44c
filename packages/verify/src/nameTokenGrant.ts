import { isPlainObject, type TypedData } from '@countersign/protocol'
import { toPrintable } from './toPrintable.ts'

type Members = Readonly<Record<string, unknown>>
export type Grant = {
  title: string
  sentence: string
  /** What its holder can do with the signature. */
  warnings: readonly string[]
}

/**
 * Typed data that moves tokens, by its primary type: that name is in the hash that a token's contract checks, so that no other name gets
 * tokens out of these contracts. Rather one warning too many: members that are missing are shown as unknown.
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
      return warn('Permit2: a transfer of tokens', [
        ...toList(message.permitted).map(
          (permitted) =>
            `Whoever has the signature lets ${show(message.spender)} take ${showAmount(permitted.amount)} of the token ${show(permitted.token)} from this wallet, once${showDeadline(message.deadline)}.`,
        ),
      ])
    case 'TransferWithAuthorization':
    case 'ReceiveWithAuthorization':
      return warn('A transfer of tokens (EIP-3009)', [
        `Whoever has the signature can move ${showAmount(message.value)} of the token ${token} from this wallet to ${show(message.to)}${showDeadline(message.validBefore)}.`,
        ...warnOfOther(message.from, wallet),
      ])
    case 'CancelAuthorization':
      if (!hasOnly(message, ['authorizer', 'nonce'])) return undefined
      return {
        title: 'The end of a transfer of tokens (EIP-3009)',
        sentence: 'It makes an authorization that was signed before worthless.',
        warnings: warnOfOther(message.authorizer, wallet),
      }
    default:
      return undefined
  }
}

/** EIP-2612, and the older form of DAI, which allows all or nothing. */
function namePermit(message: Members, token: string, wallet: string): Grant {
  const spender = show(message.spender)
  const others = warnOfOther(message.owner ?? message.holder, wallet)
  const isOfDai = message.allowed !== undefined
  const isWithdrawn = isOfDai
    ? message.allowed === false && hasOnly(message, ['holder', 'spender', 'nonce', 'expiry', 'allowed'])
    : toInteger(message.value) === 0n && hasOnly(message, ['owner', 'spender', 'value', 'nonce', 'deadline'])
  if (isWithdrawn) return withdraw('Permit: the end of an allowance for tokens (EIP-2612)', others)
  const amount = isOfDai ? 'any amount' : showAmount(message.value)
  // Dai.permit: an expiry of zero stands for none. Contracts that took it for a time long past would refuse the signature.
  const isEndless = message.deadline === undefined && toInteger(message.expiry) === 0n
  const until = isEndless ? ' for ever' : showDeadline(message.deadline ?? message.expiry)
  return warn('Permit: an allowance for tokens (EIP-2612)', [
    `Whoever has the signature lets ${spender} take ${amount} of the token ${token} from this wallet. The signature holds${until || ' for ever'}; the allowance stays until it is used or changed.`,
    ...others,
  ])
}

/** Permit2's PermitSingle and PermitBatch. An amount of zero ends an allowance. */
function nameAllowances(message: Members): Grant {
  const details = toList(message.details)
  const spender = show(message.spender)
  const isEnd = (detail: Members) =>
    toInteger(detail.amount) === 0n && hasOnly(detail, ['token', 'amount', 'expiration', 'nonce'])
  const given = details.filter((detail) => !isEnd(detail))
  const isWithdrawn = details.length > 0 && given.length === 0
  if (isWithdrawn && hasOnly(message, ['details', 'spender', 'sigDeadline'])) {
    return withdraw('Permit2: the end of an allowance for tokens', [])
  }
  return warn(
    'Permit2: an allowance for tokens',
    given.map(
      ({ amount, token, expiration }) =>
        `Whoever has the signature lets ${spender} take ${showAmount(amount)} of the token ${show(token)} from this wallet${showExpiration(expiration)}.`,
    ),
  )
}

/** What another contract makes of a member that the standard does not have is not known: only the standard's own form is harmless. */
function hasOnly(members: Members, names: readonly string[]): boolean {
  return Object.keys(members).every((name) => names.includes(name))
}

function withdraw(title: string, warnings: readonly string[]): Grant {
  return { title, sentence: 'It gives away nothing: it sets an allowance that there may be to zero.', warnings }
}

function warn(title: string, warnings: readonly string[]): Grant {
  const unnamed = 'Whoever has the signature can take tokens from this wallet.'
  return {
    title,
    sentence: 'It gives away tokens. No transaction of this wallet is needed for that.',
    warnings: warnings.length === 0 ? [unnamed] : warnings,
  }
}

function warnOfOther(owner: unknown, wallet: string): string[] {
  const isOwn = typeof owner === 'string' && owner.toLowerCase() === wallet.toLowerCase()
  return isOwn ? [] : [`It names another owner than this wallet: ${show(owner)}.`]
}

/** One entry or a list of them. */
function toList(value: unknown): Members[] {
  return (Array.isArray(value) ? value : [value]).filter(isPlainObject)
}

function show(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? toPrintable(String(value)) : 'somebody unknown'
}

/** In the smallest unit of the token: how many digits it has, only its contract says. */
function showAmount(value: unknown): string {
  const amount = toInteger(value)
  if (amount === undefined) return 'an unknown amount'
  // The largest number of 256 bits, or of Permit2's 160, is how contracts spell "no limit".
  return amount >= 2n ** 160n - 1n ? 'an unlimited amount' : `${amount} smallest units`
}

function showDeadline(value: unknown): string {
  const seconds = toInteger(value)
  if (seconds === undefined) return ''
  const date = new Date(Number(seconds) * 1000)
  return Number.isNaN(date.getTime()) ? ' for ever' : ` until ${date.toISOString()}`
}

/** Permit2, Allowance.updateAmountAndExpiration: zero stands for the time of the block. */
function showExpiration(value: unknown): string {
  return toInteger(value) === 0n ? ', only in the block that the signature is used in' : showDeadline(value)
}

function toInteger(value: unknown): bigint | undefined {
  const isNumber = typeof value === 'string' && /^(?:0x[0-9a-fA-F]{1,64}|\d{1,78})$/.test(value)
  if (typeof value === 'bigint') return value
  return isNumber || Number.isSafeInteger(value) ? BigInt(value as string | number) : undefined
}
