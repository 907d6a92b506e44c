import { expect, test } from 'vitest'
import { readTarget } from './readTarget.ts'

const read = (url: string, host = 'api.example') => readTarget({ url, headers: { host } })

test.each([
  ['/proof/abc_-', '/proof/abc_-', ''],
  ['/auth/google?return_to=a?b&c=%20', '/auth/google', '?return_to=a?b&c=%20'],
  ['/auth?', '/auth', ''],
  ['/log#part', '/log', ''],
  ['/a/../health', '/health', ''],
  ['/a/%2e%2e/health', '/health', ''],
  ['/sign/%64igest', '/sign/digest', ''],
  ['/log/x/tile/0%2F000', '/log/x/tile/0%2F000', ''],
  ['/proof/%2541', '/proof/%2541', ''],
  ['/proof/%zz', '/proof/%zz', ''],
  ['http://other.example/health?a=b', '/health', '?a=b'],
  ['//evil.example/health', '//evil.example/health', ''],
])('%s is for %s', (url, path, search) => {
  expect(read(url)).toMatchObject({ path, search })
})

test.each(['', '*', 'health', '/\\evil.example', 'http://[', 'ftp://api.example/'])('rejects the target %j', (url) => {
  expect(read(url)).toBeUndefined()
})

test.each(['', 'localhost:8080', 'API.example', '[::1]:8080', 'api.example:80'])('accepts the Host %j', (host) => {
  expect(read('/health', host)).toMatchObject({ path: '/health' })
})

test.each(['a@b', 'a b', 'a/b', 'a?b', 'a#b', 'a\\b', 'a:b', 'api.example:99999'])('rejects the Host %j', (host) => {
  expect(read('/health', host)).toBeUndefined()
})
