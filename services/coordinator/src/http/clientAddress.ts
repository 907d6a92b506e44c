import { isIPv4, isIPv6 } from 'node:net'
import type { TrustedProxies } from '@countersign/service'

type ClientAddressParameters = {
  socketAddress: string | undefined
  /** `X-Forwarded-For`: each proxy appends the address that called it. */
  forwardedFor: string | undefined
  isTrusted: TrustedProxies
}

/**
 * Returns the nearest address that is not a trusted proxy. The caller can forge everything further left in `X-Forwarded-For`, so it cannot
 * choose the address that is counted.
 */
export function toClientAddress({ socketAddress, forwardedFor, isTrusted }: ClientAddressParameters): string {
  let address = parseAddress(socketAddress ?? '') ?? 'unknown'
  for (const hop of forwardedFor?.split(',').reverse() ?? []) {
    if (!isTrusted(address)) break
    const next = parseAddress(hop.trim())
    if (next === undefined) break
    address = next
  }
  return address
}

/** Normalizes an address: removes the port, the zone and the IPv4-in-IPv6 prefix. */
function parseAddress(text: string): string | undefined {
  if (isIPv4(text)) return text
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text
  const address = bare.replace(/%.*$/, '')
  if (isIPv4(address)) return address
  if (!isIPv6(address)) return undefined
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  return mapped ?? new URL(`http://[${address}]`).hostname.slice(1, -1)
}

/** The unit that rate limits count: an IPv4 address, or an IPv6 /64, because one customer usually gets a whole /64. */
export function toAddressGroup(address: string): string {
  if (!address.includes(':')) return address
  const [head = '', tail] = address.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length
  const groups = [...left, ...new Array<string>(Math.max(0, zeros)).fill('0'), ...right]
  return `${groups.slice(0, 4).join(':')}::/64`
}
