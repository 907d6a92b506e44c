import { BlockList, isIPv4, isIPv6 } from 'node:net'

/**
 * What is not on the internet, by IANA's registry of special-purpose addresses (RFC 6890): this host, private, shared (CGNAT), loopback,
 * link-local, protocol assignments, documentation, 6to4 relays, benchmarks, multicast, reserved and broadcast. Services that tell a
 * machine its secrets are among them, save Azure's, whose address is a public one.
 */
const special: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
  ['168.63.129.16', 32],
]

/** Of IPv6 only global unicast is public (RFC 4291 §2.4): mapped, translated, local and multicast addresses are all outside of it. */
const globalUnicast: readonly (readonly [string, number])[] = [['2000::', 3]]

/** Inside of it: protocol assignments with Teredo and ORCHID, 6to4, which carry an IPv4 address, and documentation. */
const specialUnicast: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]

const refused4 = toList(special, 'ipv4')
const allowed6 = toList(globalUnicast, 'ipv6')
const refused6 = toList(specialUnicast, 'ipv6')
const loopback4 = toList([['127.0.0.0', 8]], 'ipv4')

/** Whether an address is one of the public internet. What is no address, or has a zone, is not. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !refused4.check(address, 'ipv4')
  return (
    isIPv6(address) && !address.includes('%') && allowed6.check(address, 'ipv6') && !refused6.check(address, 'ipv6')
  )
}

/** Whether an address is this machine itself. */
export function isLoopbackAddress(address: string): boolean {
  return isIPv4(address) ? loopback4.check(address, 'ipv4') : address === '::1'
}

function toList(ranges: readonly (readonly [string, number])[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const [net, prefix] of ranges) list.addSubnet(net, prefix, family)
  return list
}
