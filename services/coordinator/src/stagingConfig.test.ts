import { ConfigError, describeFault, testChainIds } from '@countersign/service'
import { expect, test } from 'vitest'
import { readConfig } from './config.ts'
import { readWorkerConfig } from './publish/config.ts'

type Env = Record<string, string | undefined>

const chain: Env = {
  RPC_URL: 'http://127.0.0.1:8545',
  CHAIN_ID: '31337',
  ATTESTATIONS_ADDRESS: `0x${'ab'.repeat(20)}`,
  PUBLISHER_PRIVATE_KEY: `0x${'a5'.repeat(32)}`,
  IPFS_PINNER: 'kubo',
}

const staging: Env = {
  NODE_ENV: 'staging',
  MOCK_ATTESTATION: 'true',
  HOST: '0.0.0.0',
  PUBLIC_URL: 'https://api.staging.example',
  ALLOWED_ORIGINS: 'https://api.staging.example',
  DATABASE_URL: 'postgres://db.example/countersign',
  ENCLAVE_URL: 'https://enclave.internal:8090',
  OIDC_GOOGLE_CLIENT_ID: 'id',
  OIDC_GOOGLE_CLIENT_SECRET: 'a client secret',
  ENTROPY_URL: 'https://satellite.example',
  ENTROPY_PUBLIC_KEY: '5a'.repeat(32),
  ...chain,
}

const deps = {
  version: '1.2.3',
  readFile() {
    throw new Error('no such file')
  },
}

function faultsOf(read: () => unknown): readonly string[] {
  try {
    read()
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map(describeFault)
    throw error
  }
}

test('staging allows simulated hardware on a public address, for test networks', () => {
  expect(readConfig(staging, deps)).toMatchObject({
    mode: 'staging',
    isMock: true,
    listen: { host: '0.0.0.0' },
    app: {
      isMock: true,
      allowedChainIds: testChainIds,
      isChainRequired: true,
    },
  })
  const loopback = {
    PUBLIC_URL: 'http://localhost:8080',
    ALLOWED_ORIGINS: 'http://localhost:8088',
    COOKIE_SAMESITE: 'lax',
  }
  expect(readConfig({ ...staging, ...loopback }, deps).app.isChainRequired).toBe(true)
})

test.each<[string, Env, string]>([
  ['real silicon', { MOCK_ATTESTATION: undefined }, 'MOCK_ATTESTATION: staging supports only simulated hardware'],
  ['mainnet to publish to', { CHAIN_ID: '1' }, 'CHAIN_ID: expected a test network'],
  ['no chain to publish to', { CHAIN_ID: undefined }, 'CHAIN_ID: missing'],
  ['Base to sign for', { ALLOWED_CHAIN_IDS: '31337,8453' }, 'ALLOWED_CHAIN_IDS: expected a test network'],
  ['plain http', { PUBLIC_URL: 'http://api.staging.example', COOKIE_SAMESITE: 'lax' }, 'PUBLIC_URL: expected https'],
  [
    'an https address in other letters, by which no cookie would be secure',
    { PUBLIC_URL: 'HTTPS://api.staging.example', COOKIE_SAMESITE: 'lax' },
    'PUBLIC_URL: expected https',
  ],
  ['an enclave without TLS', { ENCLAVE_URL: 'http://127.0.0.1:8090' }, 'ENCLAVE_URL: expected https in staging'],
  ['unsigned entropy', { ENTROPY_ALLOW_UNSIGNED: 'true' }, 'ENTROPY_ALLOW_UNSIGNED: staging allows it only'],
  ['Kubo far away', { IPFS_API_URL: 'http://kubo.example:5001' }, 'IPFS_API_URL: expected https, or http on loopback'],
])('refused in staging: %s', (_, changes, expected) => {
  expect(faultsOf(() => readConfig({ ...staging, ...changes }, deps)).join('\n')).toContain(expected)
})

test('keeps a narrower list of test networks', () => {
  expect(readConfig({ ...staging, ALLOWED_CHAIN_IDS: '31337' }, deps).app.allowedChainIds).toEqual([31337])
})

test('production rejects what only staging allows', () => {
  const faults = faultsOf(() => readConfig({ ...staging, NODE_ENV: 'production' }, deps)).join('\n')
  for (const text of [
    'MOCK_ATTESTATION: rejected in production',
    'HOST: expected loopback',
    'PUBLIC_URL: expected loopback',
  ]) {
    expect(faults).toContain(text)
  }
})

test('outside staging, simulated hardware is limited to loopback', () => {
  const faults = faultsOf(() => readConfig({ ...staging, NODE_ENV: undefined }, deps)).join()
  expect(faults).toContain('HOST: expected loopback with MOCK_ATTESTATION=true')
  expect(faults).toContain('PUBLIC_URL: expected loopback with MOCK_ATTESTATION=true')
})

test('a separate worker publishes to test networks, too', () => {
  const worker = { ...chain, NODE_ENV: 'staging', DATABASE_URL: staging.DATABASE_URL }
  expect(faultsOf(() => readWorkerConfig(worker, deps))).toEqual([])
  expect(faultsOf(() => readWorkerConfig({ ...worker, CHAIN_ID: '1' }, deps)).join()).toContain(
    'CHAIN_ID: expected a test network',
  )
  expect(faultsOf(() => readWorkerConfig({ ...worker, CHAIN_ID: '1', NODE_ENV: 'production' }, deps))).toEqual([])
})
