import { chains, nameChain } from '@countersign/protocol'
import { formatUnits, getAddress } from 'viem'

const SHOWN_DECIMALS = 6

/** An amount for display: truncated to six decimals, never rounded up. */
export function toShortAmount(amount: bigint, decimals: number): string {
  const [whole = '0', fraction = ''] = formatUnits(amount, decimals).split('.')
  const shown = fraction.slice(0, SHOWN_DECIMALS).replace(/0+$/, '')
  if (amount > 0n && whole === '0' && shown === '') return `< 0.${'0'.repeat(SHOWN_DECIMALS - 1)}1`
  const grouped = whole.replace(/\B(?=(?:\d{3})+$)/g, '\u202f')
  return shown === '' ? grouped : `${grouped}.${shown}`
}

export function toCoin({ chainId }: { chainId: number }): string {
  return chains[chainId]?.coin ?? 'coins'
}

export function toShortHex(hex: string): string {
  return hex.length <= 14 ? hex : `${hex.slice(0, 8)}…${hex.slice(-6)}`
}

export function toShortAddress(address: string): string {
  return toShortHex(getAddress(address))
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['hour', 3_600_000],
  ['minute', 60_000],
]

const DAY_AND_TIME: Intl.DateTimeFormatOptions = {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
}

/** "3 minutes ago". After a day, local date and time. */
export function toAgo(time: string, now: number): string {
  const age = now - Date.parse(time)
  if (age >= 86_400_000) {
    const isThisYear = new Date(time).getFullYear() === new Date(now).getFullYear()
    return new Intl.DateTimeFormat('en-GB', {
      ...DAY_AND_TIME,
      ...(isThisYear ? {} : { year: 'numeric' }),
    }).format(new Date(time))
  }
  for (const [unit, length] of UNITS) {
    if (age >= length) return new Intl.RelativeTimeFormat('en-GB').format(-Math.floor(age / length), unit)
  }
  return 'just now'
}

/**
 * Local date and time, such as "15 November 2026 at 14:05 CET". Returns an invalid time unchanged, because a forged receipt may contain one.
 */
export function toDateTime(time: string): string {
  if (Number.isNaN(Date.parse(time))) return time
  return new Intl.DateTimeFormat('en-GB', {
    ...DAY_AND_TIME,
    month: 'long',
    year: 'numeric',
    timeZoneName: 'short',
  }).format(new Date(time))
}

export function toChainName(config: { chainId: number; chainName?: string }): string {
  return config.chainName ?? nameChain(config.chainId)
}
