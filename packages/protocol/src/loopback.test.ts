import { expect, test } from 'vitest'
import { isLoopbackHost, isLoopbackUrl, isSafeUrl } from './loopback.ts'

test.each(['127.0.0.1', '::1', 'localhost'])('%s is this machine', (host) => {
  expect(isLoopbackHost(host)).toBe(true)
  const url = `http://${host.includes(':') ? `[${host}]` : host}:8080/path`
  expect(isLoopbackUrl(url)).toBe(true)
  expect(isLoopbackUrl(new URL(url))).toBe(true)
})

test.each(['', '0.0.0.0', '::', '[::1]', '127.0.0.1.example', 'localhost.example', 'Localhost', '10.0.0.1'])(
  'the host %j is not this machine',
  (host) => {
    expect(isLoopbackHost(host)).toBe(false)
  },
)

test.each([
  '',
  'localhost',
  'http://127.0.0.1.example',
  'http://localhost.example',
  'http://127.0.0.1@example.org',
  'http://[::2]',
  'http://0.0.0.0',
])('the URL %j is not on this machine', (url) => {
  expect(isLoopbackUrl(url)).toBe(false)
})

test.each(['https://example.org', 'https://127.0.0.1', 'http://127.0.0.1:1/a', 'http://[::1]', 'http://localhost'])(
  '%s is a private connection',
  (url) => {
    expect(isSafeUrl(url)).toBe(true)
    expect(isSafeUrl(new URL(url))).toBe(true)
  },
)

test.each([
  '',
  'https://',
  'example.org',
  'HTTPS://example.org',
  ' https://example.org',
  'http://example.org',
  'http://127.0.0.1@example.org',
  'ftp://localhost',
  'file:///etc/hosts',
  'unix:/run/enclave.sock',
])('%j is not safe', (url) => {
  expect(isSafeUrl(url)).toBe(false)
})
