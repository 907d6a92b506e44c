import { expect, test } from 'vitest'
import { isLoopbackAddress, isPublicAddress } from './postWebhook.ts'

test.each([
  ['this host', '0.0.0.0', '0.1.2.3'],
  [
    'private (RFC 1918)',
    '10.0.0.1',
    '10.255.255.255',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.0.1',
    '192.168.255.255',
  ],
  ['shared, CGNAT (RFC 6598)', '100.64.0.1', '100.100.100.200', '100.127.255.255'],
  ['loopback', '127.0.0.1', '127.255.255.254', '::1'],
  [
    'link-local, with the metadata of clouds',
    '169.254.0.1',
    '169.254.169.254',
    'fe80::1',
    'febf::1',
    'fe80::a9fe:a9fe',
  ],
  ['metadata of a cloud under a public address', '168.63.129.16'],
  ['protocol assignments', '192.0.0.1', '192.0.0.192', '192.88.99.1', '2001::1', '2001:20::1', '2001:1ff::1'],
  ['documentation', '192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1'],
  ['benchmarks', '198.18.0.1', '198.19.255.255'],
  ['multicast', '224.0.0.1', '239.255.255.250', 'ff02::1', 'ff0e::1'],
  ['reserved and broadcast', '240.0.0.1', '255.255.255.255', '5f00::1', '4000::1'],
  ['unspecified', '::', '::0'],
  [
    'IPv4-mapped (RFC 4291)',
    '::ffff:10.0.0.1',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '::ffff:a9fe:a9fe',
    '0:0:0:0:0:ffff:7f00:1',
  ],
  ['IPv4-compatible', '::127.0.0.1', '::8.8.8.8'],
  ['NAT64 (RFC 6052, RFC 8215)', '64:ff9b::7f00:1', '64:ff9b::8.8.8.8', '64:ff9b:1::a00:1'],
  ['6to4 (RFC 3056) and Teredo (RFC 4380)', '2002:7f00:1::', '2002:a00:1::1', '2001:0:7f00:1::'],
  ['unique local (RFC 4193), with metadata', 'fc00::1', 'fd00:ec2::254', 'fdff::1'],
  ['site-local', 'fec0::1'],
  ['discard only (RFC 6666)', '100::1'],
  ['of a zone', 'fe80::1%eth0', '2600::1%1'],
  ['none', '', 'localhost', '127.1', '0x7f000001', '2130706433', '017700000001', '10.0.0.1 ', '1.2.3.4.5', '[::1]'],
])('not public: %s', (_name, ...addresses) => {
  for (const address of addresses) expect(isPublicAddress(address), address).toBe(false)
})

test.each([
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '169.253.255.255',
  '169.255.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.1',
  '192.167.255.255',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '168.63.129.15',
  '2600::1',
  '2606:4700::1111',
  '2001:200::1',
  '2001:db9::1',
  '2003::1',
  '3ffe::1',
  '2a00:1450::200e',
])('public: %s', (address) => {
  expect(isPublicAddress(address)).toBe(true)
})

test('isLoopbackAddress accepts only loopback', () => {
  for (const address of ['127.0.0.1', '127.8.9.10', '::1']) expect(isLoopbackAddress(address), address).toBe(true)
  for (const address of ['128.0.0.1', '::', '::2', '0.0.0.0', '::ffff:127.0.0.1', 'localhost', '']) {
    expect(isLoopbackAddress(address), address).toBe(false)
  }
})
