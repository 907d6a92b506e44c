import { nameChain } from '@countersign/protocol'
import { formatEther } from 'viem'

const SHOWN_DECIMALS = 6

/** An amount to read at a glance: cut after six decimals, never rounded up to more than there is. */
export function toShortEther(wei: bigint): string {
  const [whole = '0', decimals = ''] = formatEther(wei).split('.')
  const shown = decimals.slice(0, SHOWN_DECIMALS).replace(/0+$/, '')
  if (wei > 0n && whole === '0' && shown === '') return `< 0.${'0'.repeat(SHOWN_DECIMALS - 1)}1`
  const grouped = whole.replace(/\B(?=(?:\d{3})+$)/g, '\u202f')
  return shown === '' ? grouped : `${grouped}.${shown}`
}

/** The two ends of an address or hash. */
export function toShortHex(hex: string): string {
  return hex.length <= 14 ? hex : `${hex.slice(0, 8)}…${hex.slice(-6)}`
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
]

/** "3 minutes ago"; after a week, the date. */
export function toAgo(time: string, now: number): string {
  const age = now - Date.parse(time)
  if (age >= 7 * 86_400_000) return new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' }).format(new Date(time))
  for (const [unit, length] of UNITS) {
    if (age >= length) return new Intl.RelativeTimeFormat('en-GB').format(-Math.floor(age / length), unit)
  }
  return 'just now'
}

export function toDateTime(time: string): string {
  return new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short' }).format(new Date(time))
}

export function toChainName(config: { chainId: number; chainName?: string }): string {
  return config.chainName ?? nameChain(config.chainId)
}
