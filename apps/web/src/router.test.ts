import { expect, test } from 'vitest'
import { parseRoute } from './router.tsx'

test.each([
  ['/', { page: 'wallet' }],
  ['/verify', { page: 'verify' }],
  ['/verify/', { page: 'verify' }],
  ['/proof/q83vEjRWeJCrze8SNFZ4kA', { page: 'proof', slug: 'q83vEjRWeJCrze8SNFZ4kA' }],
  ['/proof/a%20b', { page: 'proof', slug: 'a b' }],
  ['/proof', { page: 'not_found' }],
  ['/proof/a/b', { page: 'not_found' }],
  ['/proof/%', { page: 'not_found' }],
  ['/verify/x', { page: 'not_found' }],
  ['/sign', { page: 'sign' }],
  ['/sign/x', { page: 'not_found' }],
  ['/wallet', { page: 'not_found' }],
  ['/vaults', { page: 'vaults' }],
  ['/vaults/new', { page: 'new_vault' }],
  [`/vaults/0x${'Ab'.repeat(20)}`, { page: 'vault', address: `0x${'ab'.repeat(20)}` }],
  [`/vaults/0x${'ab'.repeat(19)}`, { page: 'not_found' }],
  [`/vaults/0x${'ab'.repeat(20)}/x`, { page: 'not_found' }],
  ['/vaults/old', { page: 'not_found' }],
  ['/approve', { page: 'approve' }],
  ['/approve/x', { page: 'not_found' }],
  ['/passkey', { page: 'passkey' }],
])('%s', (path, route) => {
  expect(parseRoute(path)).toEqual(route)
})
