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
])('%s', (path, route) => {
  expect(parseRoute(path)).toEqual(route)
})
