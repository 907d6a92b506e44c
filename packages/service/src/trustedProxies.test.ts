import { expect, test } from 'vitest'
import { createTrustedProxies } from './trustedProxies.ts'

test.each(['', 'x', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/8/8', '10.0.0', 'fd00::/129', '10.0.0.0/', 'localhost'])(
  'rejects TRUSTED_PROXIES with %j',
  (entry) => {
    expect(() => createTrustedProxies([entry])).toThrow(JSON.stringify(entry))
  },
)

test.each([
  ['10.1.2.3', true],
  ['::ffff:10.1.2.3', true],
  ['11.0.0.1', false],
  ['fd00::1', true],
  ['fe80::1', false],
  ['', false],
  ['localhost', false],
])('whether %j is a trusted proxy: %s', (address, expected) => {
  expect(createTrustedProxies(['10.0.0.0/8', 'fd00::/8'])(address)).toBe(expected)
})
