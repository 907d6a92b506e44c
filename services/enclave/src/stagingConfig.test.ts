import { ConfigError, describeFault, testChainIds } from '@countersign/service'
import { expect, test } from 'vitest'
import { readConfig } from './config.ts'

const staging = {
  NODE_ENV: 'staging',
  MOCK_ATTESTATION: 'true',
  QUOTE_SOURCE: 'mock',
  LISTEN: 'https',
  HOST: '0.0.0.0',
  ROOT_SECRET: 'file:/tmp/secret',
  OIDC_ISSUERS: 'https://a.example=one',
  ENTROPY_PUBLIC_KEY: '18edb664c40ab63537e6172fec37395f602afbba7a6c1b983ea80ba0b7f35f11',
}
const read = (env: Record<string, string | undefined>) => readConfig(env, { version: '1.2.3', readFile: () => '' })

function faultsOf(env: Record<string, string | undefined>): string {
  try {
    read(env)
    return ''
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map(describeFault).join('\n')
    throw error
  }
}

test('accepts simulated hardware on any address, only for test networks', () => {
  expect(read(staging)).toMatchObject({ listen: { host: '0.0.0.0' }, chainIds: testChainIds })
  expect(read({ ...staging, NODE_ENV: undefined, HOST: '127.0.0.1' }).chainIds).toBeUndefined()
})

test.each([
  [
    'real silicon',
    { QUOTE_SOURCE: 'configfs', MOCK_ATTESTATION: undefined },
    'staging supports only simulated hardware',
  ],
  ['plain http', { LISTEN: 'http', HOST: '127.0.0.1' }, 'LISTEN: expected https in staging'],
])('refused in staging: %s', (_, changes, expected) => {
  expect(faultsOf({ ...staging, ...changes })).toContain(expected)
})

test('production rejects everything that only staging allows', () => {
  const faults = faultsOf({ ...staging, NODE_ENV: 'production' })
  for (const text of [
    'QUOTE_SOURCE: mock is rejected',
    'ROOT_SECRET: file',
    'CALLER_POLICY_FILE',
    'HOST: expected loopback',
  ]) {
    expect(faults).toContain(text)
  }
})
