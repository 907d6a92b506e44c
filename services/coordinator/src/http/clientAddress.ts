import { isIPv4, isIPv6 } from 'node:net'
import type { TrustedProxies } from '@countersign/service'

type ClientAddressParameters = {
  socketAddress: string | undefined
  /** `X-Forwarded-For`: each proxy adds the address it was called from at the end. */
  forwardedFor: string | undefined
  isTrusted: TrustedProxies
}

/**
 * The nearest address that is not one of our proxies. What is left of it in `X-Forwarded-For` comes from the caller itself,
 * so a caller cannot choose the address that is counted.
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

/** An address in one spelling, without port, zone or IPv4-in-IPv6 prefix. */
function parseAddress(text: string): string | undefined {
  if (isIPv4(text)) return text
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text
  const address = bare.replace(/%.*$/, '')
  if (isIPv4(address)) return address
  if (!isIPv6(address)) return undefined
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  return mapped ?? new URL(`http://[${address}]`).hostname.slice(1, -1)
}

/** Who is counted together: an IPv4 address, or an IPv6 /64, since the owner of one address there has them all. */
export function toAddressGroup(address: string): string {
  if (!address.includes(':')) return address
  const [head = '', tail] = address.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length
  const groups = [...left, ...new Array<string>(Math.max(0, zeros)).fill('0'), ...right]
  return `${groups.slice(0, 4).join(':')}::/64`
}
