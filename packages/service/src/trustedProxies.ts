import { BlockList, isIP, isIPv4 } from 'node:net'

/** Whether an address belongs to the operator's proxies. */
export type TrustedProxies = (address: string) => boolean

/**
 * Parses `TRUSTED_PROXIES`: addresses and CIDR ranges. Throws a plain `Error` that names the invalid entry.
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
