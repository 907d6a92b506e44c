import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'

/** Whether an address is one of the operator's own proxies. */
export type TrustedProxies = (address: string) => boolean

/**
 * Reads `TRUSTED_PROXIES`: addresses and CIDR ranges. Throws a plain `Error` that names the entry it cannot read.
 *
 * @example
 * createTrustedProxies(['127.0.0.1', '10.0.0.0/8', 'fd00::/8'])
 */
export function createTrustedProxies(entries: readonly string[]): TrustedProxies {
  const list = new BlockList()
  for (const entry of entries) {
    const [address = '', bits, ...rest] = entry.split('/')
    const family = isIPv4(address) ? 'ipv4' : 'ipv6'
    const most = family === 'ipv4' ? 32 : 128
    const length = bits === undefined ? most : /^[0-9]{1,3}$/.test(bits) ? Number(bits) : Number.NaN
    if (isIP(address) === 0 || rest.length > 0 || !(length <= most)) {
      throw new Error(`not an address or CIDR range: ${JSON.stringify(entry)}`)
    }
    list.addSubnet(address, length, family)
  }
  return (address) => isIP(address) !== 0 && list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')
}

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
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text
  const address = bare.replace(/%.*$/, '')
  if (isIPv4(address)) return address
  if (!isIPv6(address)) return undefined
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  return mapped ?? new URL(`http://[${address}]`).hostname.slice(1, -1)
}

/** Who is counted together: an IPv4 address, or an IPv6 /64, since the owner of one address there has them all. */
export function toAddressGroup(address: string): string {
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length
  const groups = [...left, ...new Array<string>(Math.max(0, zeros)).fill('0'), ...right]
  return `${groups.slice(0, 4).join(':')}::/64`
}
