import type { Mode } from '@countersign/service'
import { describe, expect, test } from 'vitest'
import { readWebhooks } from './readWebhooks.ts'

const KEY = '11'.repeat(32)

function read(env: Record<string, string>, { mode = 'development' as Mode } = {}) {
  const faults: string[] = []
  const readFile = (path: string) => {
    if (path !== 'key') throw new Error('no such file')
    return `${KEY}\n${'22'.repeat(32)}\n`
  }
  const config = readWebhooks(env, { readFile, mode }, (setting, problem) => void faults.push(`${setting}: ${problem}`))
  return { config, faults }
}

describe('WEBHOOK_URL', () => {
  test('is optional', () => {
    expect(read({})).toEqual({ config: undefined, faults: [] })
    expect(read({ WEBHOOK_URL: '' })).toEqual({ config: undefined, faults: [] })
  })
  test('needs https and a key', () => {
    const { config, faults } = read(
      { WEBHOOK_URL: 'https://a.example/hook?x=1, https://b.example', WEBHOOK_PRIVATE_KEY: KEY },
      { mode: 'production' },
    )
    expect(faults).toEqual([])
    expect(config).toEqual({
      urls: [new URL('https://a.example/hook?x=1'), new URL('https://b.example')],
      seeds: [Buffer.from(KEY, 'hex')],
      allowsLoopback: false,
      deadlineMs: 259_200_000,
      timeoutMs: 10_000,
    })
  })
  test('allows several keys from a file', () => {
    const { config, faults } = read({ WEBHOOK_URL: 'https://a.example', WEBHOOK_PRIVATE_KEY_FILE: 'key' })
    expect([faults, config?.seeds.length]).toEqual([[], 2])
  })
  test('allows http and loopback only with WEBHOOK_ALLOW_LOOPBACK outside production', () => {
    const env = {
      WEBHOOK_URL: 'http://127.0.0.1:9000/hook,http://localhost:1,http://[::1]:2',
      WEBHOOK_PRIVATE_KEY: KEY,
    }
    expect(read(env).faults).toEqual(Array.from({ length: 3 }, () => 'WEBHOOK_URL: expected a public address'))
    expect(read({ ...env, WEBHOOK_ALLOW_LOOPBACK: 'true' }).faults).toEqual([])
    expect(read({ ...env, WEBHOOK_ALLOW_LOOPBACK: 'true' }, { mode: 'production' }).faults).toEqual([
      'WEBHOOK_ALLOW_LOOPBACK: rejected in production',
    ])
  })
})

test.each([
  ['plain http', { WEBHOOK_URL: 'http://a.example' }, 'WEBHOOK_URL: expected https'],
  ['another scheme', { WEBHOOK_URL: 'ftp://a.example' }, 'WEBHOOK_URL: expected https'],
  ['no URL', { WEBHOOK_URL: 'a.example' }, 'WEBHOOK_URL: expected URLs without credentials or fragment'],
  [
    'a password in it',
    { WEBHOOK_URL: 'https://u:p@a.example' },
    'WEBHOOK_URL: expected URLs without credentials or fragment',
  ],
  ['a fragment', { WEBHOOK_URL: 'https://a.example/#x' }, 'WEBHOOK_URL: expected URLs without credentials or fragment'],
  ['a private address', { WEBHOOK_URL: 'https://10.0.0.1/' }, 'WEBHOOK_URL: expected a public address'],
  [
    'a private address, spelt as a number',
    { WEBHOOK_URL: 'https://0xa000001/' },
    'WEBHOOK_URL: expected a public address',
  ],
  ['a mapped address', { WEBHOOK_URL: 'https://[::ffff:10.0.0.1]/' }, 'WEBHOOK_URL: expected a public address'],
  [
    'the metadata of a cloud',
    { WEBHOOK_URL: 'https://169.254.169.254/latest' },
    'WEBHOOK_URL: expected a public address',
  ],
  [
    'one twice',
    { WEBHOOK_URL: 'https://a.example,https://a.example' },
    'WEBHOOK_URL: expected at most 8 URLs, each once',
  ],
  [
    'too many',
    { WEBHOOK_URL: Array.from({ length: 9 }, (_, n) => `https://a${n}.example`).join() },
    'WEBHOOK_URL: expected at most 8 URLs, each once',
  ],
  ['no key', { WEBHOOK_PRIVATE_KEY: '' }, 'WEBHOOK_PRIVATE_KEY: expected 32 bytes of hex, or up to 4 of them'],
  ['a short key', { WEBHOOK_PRIVATE_KEY: '11' }, 'WEBHOOK_PRIVATE_KEY: expected 32 bytes of hex, or up to 4 of them'],
  [
    'a key of zeros',
    { WEBHOOK_PRIVATE_KEY: '00'.repeat(32) },
    'WEBHOOK_PRIVATE_KEY: expected 32 bytes of hex, or up to 4 of them',
  ],
  [
    'too many keys',
    { WEBHOOK_PRIVATE_KEY: Array.from({ length: 5 }, () => KEY).join() },
    'WEBHOOK_PRIVATE_KEY: expected 32 bytes of hex, or up to 4 of them',
  ],
  ['no time', { WEBHOOK_TIMEOUT_MS: '1' }, 'WEBHOOK_TIMEOUT_MS: expected a whole number from 100 to 60000'],
  [
    'a deadline beyond what is kept',
    { WEBHOOK_DEADLINE_S: '1296001' },
    'WEBHOOK_DEADLINE_S: expected a whole number from 1 to 1296000',
  ],
  ['an unused key', { WEBHOOK_URL: '' }, 'WEBHOOK_URL: required with WEBHOOK_PRIVATE_KEY'],
])('rejects %s without revealing the secret', (_name, changes, fault) => {
  const { faults } = read({ WEBHOOK_URL: 'https://a.example', WEBHOOK_PRIVATE_KEY: KEY, ...changes })
  expect(faults).toEqual([fault])
})
