import { createTrustedProxies } from '@countersign/service'
import { describe, expect, test } from 'vitest'
import { toAddressGroup, toClientAddress } from './clientAddress.ts'

const isTrusted = createTrustedProxies(['10.0.0.0/8', '127.0.0.1', 'fd00::/8'])

describe('toClientAddress', () => {
  test.each([
    ['203.0.113.1', undefined, '203.0.113.1'],
    ['203.0.113.1', '198.51.100.1', '203.0.113.1'],
    ['10.0.0.1', undefined, '10.0.0.1'],
    ['10.0.0.1', '198.51.100.1', '198.51.100.1'],
    ['10.0.0.1', 'spoofed, 198.51.100.1', '198.51.100.1'],
    ['10.0.0.1', '192.0.2.9, 198.51.100.1, 10.0.0.2', '198.51.100.1'],
    ['10.0.0.1', '198.51.100.1, garbage', '10.0.0.1'],
    ['10.0.0.1', '', '10.0.0.1'],
    ['10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['::ffff:10.0.0.1', '198.51.100.1:4711', '198.51.100.1'],
    ['::ffff:203.0.113.1', undefined, '203.0.113.1'],
    ['fd00::1', '[2001:DB8::1]:443', '2001:db8::1'],
    ['127.0.0.1', '999.1.1.1', '127.0.0.1'],
    [undefined, '198.51.100.1', 'unknown'],
  ])('socket %s, forwarded for %s: %s', (socketAddress, forwardedFor, expected) => {
    expect(toClientAddress({ socketAddress, forwardedFor, isTrusted })).toBe(expected)
  })

  test('without proxies only the socket’s address counts', () => {
    const nobody = createTrustedProxies([])
    expect(toClientAddress({ socketAddress: '127.0.0.1', forwardedFor: '1.2.3.4', isTrusted: nobody })).toBe(
      '127.0.0.1',
    )
  })
})

test.each([
  ['203.0.113.1', '203.0.113.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['unknown', 'unknown'],
])('%s is counted as %s', (address, group) => {
  expect(toAddressGroup(address)).toBe(group)
})
