import { describe, expect, test } from 'vitest'
import { ConfigError, readConfig } from './config.ts'

const valid = {
  MOCK_ATTESTATION: 'true',
  QUOTE_SOURCE: 'mock',
  ROOT_SECRET: 'file:/tmp/secret',
  OIDC_ISSUERS: 'https://b.example=two,https://a.example=one',
}

const files: Record<string, string> = {
  'policy.json': JSON.stringify({ measurements: ['11'.repeat(48)], configHashes: ['22'.repeat(32)] }),
  'ca.pem': 'certificates',
}

function read(env: Record<string, string | undefined>) {
  return readConfig(env, {
    version: '1.2.3',
    readFile(path) {
      const text = files[path]
      if (text === undefined) throw new Error('no such file')
      return text
    },
  })
}

function faultsOf(env: Record<string, string | undefined>): readonly string[] {
  try {
    read(env)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.faults
    throw error
  }
}

test('defaults: loopback, 8090, 39 ms, 256, 12 h', () => {
  expect(read(valid)).toMatchObject({
    listen: { kind: 'http', host: '127.0.0.1', port: 8090 },
    quoteSource: { kind: 'mock', latencyMs: 39 },
    batchLimit: 256,
    sessionTtlMs: 43_200_000,
    callerPolicy: { kind: 'any' },
  })
})

test('what quotes cover: issuers in order, the kinds of things, and no secret or path', () => {
  expect(read({ ...valid, CALLER_POLICY_FILE: 'policy.json', NODE_EXTRA_CA_CERTS: 'ca.pem' }).enclave).toEqual({
    issuers: [
      { issuer: 'https://a.example', audience: 'one', jwksOrigin: 'https://a.example' },
      { issuer: 'https://b.example', audience: 'two', jwksOrigin: 'https://b.example' },
    ],
    caSet: expect.stringMatching(/^bundled\+sha256:[0-9a-f]{64}$/),
    rootSecret: 'file',
    quoteSource: 'mock',
    callerPolicy: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    version: '1.2.3',
  })
})

describe('faults', () => {
  test.each([
    ['MOCK_ATTESTATION', 'yes'],
    ['MOCK_ATTESTATION', 'false'],
    ['QUOTE_SOURCE', 'real'],
    ['QUOTE_SOURCE', 'configfs'],
    ['ROOT_SECRET', undefined],
    ['ROOT_SECRET', 'file:'],
    ['ROOT_SECRET', 'abc'],
    ['OIDC_ISSUERS', undefined],
    ['OIDC_ISSUERS', 'http://evil.example=a'],
    ['PORT', '70000'],
    ['PORT', '-1'],
    ['BATCH_LIMIT', '0'],
    ['BATCH_LIMIT', '257'],
    ['SESSION_TTL_S', '43201'],
    ['LISTEN', 'ftp'],
    ['HOST', '0.0.0.0'],
    ['MOCK_QUOTE_LATENCY_MS', '1.5'],
    ['CALLER_POLICY_FILE', 'missing.json'],
    ['NODE_EXTRA_CA_CERTS', 'missing.pem'],
  ])('%s = %s', (name, value) => {
    expect(faultsOf({ ...valid, [name]: value })).not.toEqual([])
  })

  test.each([
    ['not an object', '[]'],
    ['empty lists', '{"measurements":[],"configHashes":[]}'],
    [
      'an unknown member',
      JSON.stringify({ measurements: ['11'.repeat(48)], configHashes: ['22'.repeat(32)], mesurement: 1 }),
    ],
    ['a short measurement', JSON.stringify({ measurements: ['11'], configHashes: ['22'.repeat(32)] })],
    [
      'an impossible privilege level',
      JSON.stringify({ measurements: ['11'.repeat(48)], configHashes: ['22'.repeat(32)], vmpls: [4] }),
    ],
    [
      'a misspelt patch level',
      JSON.stringify({
        measurements: ['11'.repeat(48)],
        configHashes: ['22'.repeat(32)],
        minimumTcb: { Milan: { SNP: 24 } },
      }),
    ],
    ['no JSON', '{'],
  ])('a caller policy with %s', (_, text) => {
    files['bad.json'] = text
    expect(faultsOf({ ...valid, CALLER_POLICY_FILE: 'bad.json' }).join()).toContain('CALLER_POLICY_FILE')
  })

  test.each([
    'NODE_TLS_REJECT_UNAUTHORIZED',
    'NODE_OPTIONS',
    'NODE_USE_SYSTEM_CA',
    'SSL_CERT_FILE',
    'SSL_CERT_DIR',
    'DSTACK_SOCKET',
  ])('%s on real hardware, in production or not: no quote would show it', (name) => {
    const real = { ...valid, MOCK_ATTESTATION: 'false', QUOTE_SOURCE: 'configfs', ROOT_SECRET: 'dstack' }
    expect(faultsOf(real)).toEqual([])
    for (const NODE_ENV of ['production', 'development']) {
      expect(faultsOf({ ...real, NODE_ENV, [name]: 'x' }).join()).toContain(name)
    }
  })

  test('all at once', () => {
    expect(faultsOf({ PORT: 'x', BATCH_LIMIT: 'y', LISTEN: 'z' }).length).toBeGreaterThanOrEqual(6)
  })
})
