import { readFileSync } from 'node:fs'
import { codeRegisters } from '@countersign/attestation'
import { type NoteKey, toVkey } from '@countersign/log'
import { quicknet } from '@countersign/protocol'
import { ConfigError, describeFault, settingNames } from '@countersign/service'
import { describe, expect, test } from 'vitest'
import { witnesses } from '../../../packages/log/test/logs.ts'
import { readConfig } from './config.ts'

type Env = Record<string, string | undefined>

const mock: Env = {
  MOCK_ATTESTATION: 'true',
  COOKIE_SAMESITE: 'lax',
  ALLOWED_ORIGINS: 'http://localhost:5173',
  OIDC_GOOGLE_CLIENT_ID: 'id',
  OIDC_GOOGLE_CLIENT_SECRET: 'a client secret',
  ENTROPY_URL: 'http://127.0.0.1:9000',
  ENTROPY_PUBLIC_KEY: '5a'.repeat(32),
  DATABASE_URL: 'postgres://localhost/countersign',
}

const production: Env = {
  ...mock,
  NODE_ENV: 'production',
  MOCK_ATTESTATION: undefined,
  COOKIE_SAMESITE: undefined,
  HOST: '0.0.0.0',
  PUBLIC_URL: 'https://api.example',
  ALLOWED_ORIGINS: 'https://app.example',
  DATABASE_URL: 'postgres://db.example/countersign',
  ENCLAVE_URL: 'https://enclave.example',
  ENCLAVE_POLICY_FILE: 'policy.json',
}

const measurement = Object.fromEntries(codeRegisters.map((name) => [name, '11'.repeat(48)]))
const policy = { measurements: [measurement], configHashes: ['22'.repeat(32)] }

function read(env: Env, files: Record<string, string> = { 'policy.json': JSON.stringify(policy) }) {
  return readConfig(env, {
    version: '1.2.3',
    readFile(path) {
      const text = files[path]
      if (text === undefined) throw new Error('no such file')
      return text
    },
  })
}

function faultsOf(env: Env, files?: Record<string, string>): readonly string[] {
  try {
    read(env, files)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map(describeFault)
    throw error
  }
}

test('treats an empty setting as unset', () => {
  const empty = Object.fromEntries([...settingNames, 'OIDC_GOOGLE_ISSUER'].map((name) => [name, '']))
  expect(read({ ...empty, ...mock })).toEqual(read(mock))
  const unset = { ...production, HOST: undefined, COOKIE_SAMESITE: undefined, MOCK_ATTESTATION: undefined }
  const given = Object.fromEntries(Object.entries(unset).filter(([, value]) => value !== undefined))
  expect(read({ ...empty, ...given })).toEqual(read(unset))
})

test.each(['OFF', 'false', '0', 'no', 'of'])('WORKER=%s does not turn publishing on', (text) => {
  expect(faultsOf({ ...mock, WORKER: text })).toEqual(['WORKER: expected on or off'])
})

test.each<[string, Env]>([
  ['WORKER', { WORKER: 'on' }],
  ['PUBLISHER_PRIVATE_KEY', { PUBLISHER_PRIVATE_KEY: `0x${'22'.repeat(32)}` }],
  ['PUBLISHER_PRIVATE_KEY_FILE', { PUBLISHER_PRIVATE_KEY_FILE: '/key', RPC_URL: '' }],
])('rejects %s without a chain, because proofs would wait permanently', (name, env) => {
  expect(faultsOf({ ...mock, ...env })).toEqual([`RPC_URL: required with ${name}`])
  expect(faultsOf({ ...mock, ...env, WORKER: 'off' })).toEqual([])
})

test.each(['javascript:alert(1)', 'ipfs.example', 'ftp://ipfs.example'])('IPFS_GATEWAY_URL=%s', (text) => {
  expect(faultsOf({ ...mock, IPFS_GATEWAY_URL: text })).toEqual(['IPFS_GATEWAY_URL: expected an http or https URL'])
})

test('has the documented defaults', () => {
  expect(read(mock)).toMatchObject({
    mode: 'development',
    isMock: true,
    listen: { host: '127.0.0.1', port: 8080 },
    metricsPort: undefined,
    databaseUrl: 'postgres://localhost/countersign',
    dataDir: '.countersign',
    providers: [{ id: 'google', issuer: 'https://accounts.google.com', clientId: 'id' }],
    enclaveUrls: ['http://127.0.0.1:8090'],
    enclavePolicy: {},
    reportSource: 'mock',
    entropy: { kind: 'satellite', maxAgeMs: 60_000, allowUnsigned: false },
    batchLimit: 256,
    pipelineDelayMs: 1000,
    app: {
      publicUrl: 'http://localhost:8080',
      sessionTtlMs: 43_200_000,
      sessionIdleMs: 7_200_000,
      allowedChainIds: undefined,
      trustedProxies: [],
      rateLimits: {
        sign: { count: 60, seconds: 60 },
        provision: { count: 10, seconds: 60 },
        auth: { count: 30, seconds: 60 },
        proof: { count: 600, seconds: 60 },
      },
    },
  })
})

test('accepts a complete production configuration', () => {
  const config = read({
    ...production,
    ENCLAVE_URL: 'https://a.example, https://b.example',
    OIDC_OTHER_ISSUER: 'https://issuer.example',
    OIDC_OTHER_CLIENT_ID: 'other',
    OIDC_OTHER_CLIENT_SECRET: 'another secret',
    ALLOWED_CHAIN_IDS: '1,10',
    RATE_LIMIT_SIGN: 'off',
  })
  expect(config).toMatchObject({
    mode: 'production',
    isMock: false,
    reportSource: 'configfs',
    enclaveUrls: ['https://a.example', 'https://b.example'],
    enclavePolicy: policy,
    app: { cookieSameSite: 'none', allowedChainIds: [1, 10], rateLimits: { sign: 'off' } },
  })
  expect(config.providers.map(({ id }) => id)).toEqual(['google', 'other'])
})

describe('the hash in the coordinator’s own report', () => {
  test('changes with the trusted quotes, entropy sources and users', () => {
    const looser = { 'policy.json': JSON.stringify({ ...policy, statuses: ['UpToDate', 'OutOfDate'] }) }
    const readBeacon = (changes: Partial<typeof quicknet> = {}) => {
      const { chainHash, key, genesisS, periodS } = { ...quicknet, ...changes }
      const ENTROPY_DRAND = [chainHash, key, genesisS, periodS].join(':')
      return read({ ...production, RECEIPTS: '2', ENTROPY_SOURCE: 'drand', ENTROPY_DRAND })
    }
    const hashes = [
      read(production),
      read(production, looser),
      read({ ...production, ENTROPY_PUBLIC_KEY: '6b'.repeat(32) }),
      read({ ...production, OIDC_GOOGLE_CLIENT_ID: 'another' }),
      read({ ...production, ENTROPY_MAX_AGE_S: '30' }),
      readBeacon(),
      readBeacon({ chainHash: 'ab'.repeat(32) }),
      // The same point, negated.
      readBeacon({ key: quicknet.key.replace(/^83/, 'a3') }),
      readBeacon({ genesisS: quicknet.genesisS - 3 }),
      readBeacon({ periodS: 30 }),
    ].map(({ configHash }) => configHash)
    expect(new Set(hashes).size).toBe(hashes.length)
  })

  const withPolicy = (changes: object) => ({ 'policy.json': JSON.stringify({ ...policy, ...changes }) })
  const addresses = { DATABASE_URL: 'postgres://other.example/x', PORT: '1', BATCH_LIMIT: '1' }

  test.each<[string, Env, Record<string, string>?]>([
    ['secrets, addresses and limits', { OIDC_GOOGLE_CLIENT_SECRET: 'x', ...addresses }],
    [
      'the origins that may sign for users: no reader can hold a coordinator to them',
      { ALLOWED_ORIGINS: 'https://x.example' },
    ],
    ['the names and prompts of providers', { OIDC_GOOGLE_NAME: 'Another', OIDC_GOOGLE_PROMPT: 'login' }],
    ['the enclave’s configuration hashes, which depend on it', {}, withPolicy({ configHashes: ['33'.repeat(32)] })],
    ['root secrets, which are created later', {}, withPolicy({ commitments: ['33'.repeat(32)] })],
  ])('does not change with %s', (_, changes, files) => {
    expect(read({ ...production, ...changes }, files).configHash).toBe(read(production).configHash)
  })
})

describe('faults', () => {
  test.each([
    ['MOCK_ATTESTATION', 'yes'],
    ['REPORT_SOURCE', 'real'],
    ['REPORT_SOURCE', 'configfs'],
    ['PORT', '70000'],
    ['PORT', '1.5'],
    ['METRICS_PORT', 'x'],
    ['PUBLIC_URL', 'localhost'],
    ['PUBLIC_URL', 'ftp://localhost'],
    ['ALLOWED_ORIGINS', undefined],
    ['ALLOWED_ORIGINS', '*'],
    ['ALLOWED_ORIGINS', 'http://localhost:5173/'],
    ['COOKIE_SAMESITE', undefined],
    ['COOKIE_SAMESITE', 'Lax'],
    ['SESSION_TTL_S', '43201'],
    ['SESSION_IDLE_S', '0'],
    ['RATE_LIMIT_SIGN', '60'],
    ['RATE_LIMIT_PROOF', '0/60'],
    ['OIDC_GOOGLE_CLIENT_ID', undefined],
    ['OIDC_GOOGLE_CLIENT_ID', ''],
    ['OIDC_GOOGLE_CLIENT_SECRET', undefined],
    ['OIDC_GOOGLE_ISSUER', 'http://accounts.example'],
    ['ENCLAVE_URL', ','],
    ['ENCLAVE_URL', 'http://enclave.example'],
    ['ENTROPY_SOURCE', 'dice'],
    ['ENTROPY_SOURCE', 'drand'],
    ['ENTROPY_SOURCE', 'orbitport'],
    ['ENTROPY_URL', undefined],
    ['ENTROPY_PUBLIC_KEY', undefined],
    ['ENTROPY_PUBLIC_KEY', `${'5a'.repeat(32)},5A`],
    ['ENTROPY_MAX_AGE_S', '61'],
    ['ENTROPY_ALLOW_UNSIGNED', '1'],
    ['ALLOWED_CHAIN_IDS', '1,x'],
    ['ALLOWED_CHAIN_IDS', '0'],
    ['ALLOWED_CHAIN_IDS', '0x1'],
    ['ALLOWED_CHAIN_IDS', '1e3'],
    ['ALLOWED_CHAIN_IDS', ','],
    ['ALLOWED_CHAIN_IDS', '9007199254740992'],
    ['COLLATERAL_URL', 'file:///tmp'],
    ['RECEIPTS', '0'],
    ['RECEIPTS', '3'],
    ['RECEIPTS', 'two'],
    ['BATCH_LIMIT', '257'],
    ['PIPELINE_DELAY_MS', '-1'],
    ['ENCLAVE_POLICY_FILE', 'missing.json'],
    ['LOG_WITNESSES', 'https://witness.example'],
  ])('%s = %s', (name, value) => {
    expect(faultsOf({ ...mock, [name]: value })).not.toEqual([])
  })

  test('lists all faults, each by its setting', () => {
    const faults = faultsOf({ PORT: 'x', BATCH_LIMIT: 'y', ENTROPY_SOURCE: 'z', RATE_LIMIT_AUTH: 'w' }).join('\n')
    for (const name of [
      'PORT',
      'BATCH_LIMIT',
      'ENTROPY_SOURCE',
      'ENTROPY_URL',
      'ENTROPY_PUBLIC_KEY',
      'RATE_LIMIT_AUTH',
      'ALLOWED_ORIGINS',
      'OIDC_GOOGLE_CLIENT_ID',
      'ENCLAVE_POLICY_FILE',
      'COOKIE_SAMESITE',
    ]) {
      expect(faults).toContain(`${name}:`)
    }
  })

  test('no fault quotes a secret', () => {
    const secrets = {
      OIDC_GOOGLE_CLIENT_SECRET: 'canary',
      DATABASE_URL: 'postgres://u:canary@db',
      ENTROPY_URL: 'canary',
    }
    expect(faultsOf({ ...mock, ...secrets, PORT: 'x' }).join()).not.toContain('canary')
  })
})

describe('a misspelled setting is a fault that suggests the right name', () => {
  test.each([
    ['DATABASE_URI', 'did you mean DATABASE_URL?'],
    ['OIDC_ISSUER', 'did you mean OIDC_ISSUERS?'],
    ['OIDC_AZURE_AD_CLIENT_ID', 'did you mean OIDC_AZUREAD_CLIENT_ID?'],
    ['OIDC_AZURE-AD_ISSUER', 'did you mean OIDC_AZUREAD_ISSUER?'],
    ['OIDC_google_CLIENT_ID', 'did you mean OIDC_GOOGLE_CLIENT_ID?'],
    ['OIDC_GOOGLE_CLIENTID', 'did you mean OIDC_GOOGLE_CLIENT_ID?'],
    ['OIDC_GOOGLE_SCOPES', 'expected OIDC_<ID>_ISSUER, _CLIENT_ID or _CLIENT_SECRET'],
  ])('%s', (name, meant) => {
    const faults = faultsOf({ ...mock, [name]: 'https://x.example' })
    expect(faults.filter((text) => text.startsWith(`${name}: `)).join()).toContain(meant)
  })

  test.each(['ISSUER', 'CLIENT_SECRET'])('rejects a provider with only the %s', (part) => {
    const faults = faultsOf({ ...mock, [`OIDC_OTHER_${part}`]: 'https://x.example' })
    expect(faults).toContain('OIDC_OTHER_CLIENT_ID: missing')
  })

  test('does not treat a provider’s setting as misspelled', () => {
    const parts = ['NAME', 'ICON_FILE', 'PROMPT', 'TEAM_ID', 'KEY_ID', 'PRIVATE_KEY', 'PRIVATE_KEY_FILE', 'CLIENT_ID']
    const env = Object.fromEntries(parts.map((part) => [`OIDC_APPLE_${part}`, 'x']))
    expect(faultsOf({ ...mock, ...env }).join()).not.toMatch(/unknown|did you mean/)
  })

  test('knows the same names as .env.example', () => {
    const text = readFileSync(new URL('../../../.env.example', import.meta.url), 'utf8')
    const names = [...text.matchAll(/^(?:# )?([A-Z][A-Z0-9_]+)=/gm)].map(([, name = '']) => name)
    const ours = names.filter((name) => !/^OIDC_(?:GOOGLE|APPLE)_/.test(name))
    expect(settingNames.toSorted()).toEqual([...new Set(ours)].toSorted())
    expect(
      faultsOf({ ...mock, ...Object.fromEntries(ours.map((name) => [name, mock[name] ?? ''])) }).join(),
    ).not.toContain('unknown')
  })
})

describe('allows mock attestation only on loopback', () => {
  test.each([
    ['in production', { NODE_ENV: 'production' }, 'MOCK_ATTESTATION'],
    ['on all interfaces', { HOST: '0.0.0.0' }, 'HOST'],
    ['on an interface', { HOST: '192.0.2.1' }, 'HOST'],
    ['under a public name', { PUBLIC_URL: 'https://api.example' }, 'PUBLIC_URL'],
    ['under a name that looks like loopback', { PUBLIC_URL: 'http://localhost.example' }, 'PUBLIC_URL'],
  ])('%s it is refused', (_, changes, name) => {
    expect(faultsOf({ ...mock, ...changes }).join()).toContain(name)
  })
})

test.each([undefined, ''])('rejects DATABASE_URL %j in every mode', (DATABASE_URL) => {
  for (const env of [mock, production]) {
    expect(faultsOf({ ...env, DATABASE_URL })).toEqual([expect.stringMatching(/^DATABASE_URL: /)])
  }
})

describe('production', () => {
  test.each<[string, string | undefined]>([
    ['PUBLIC_URL', 'http://api.example'],
    ['ENCLAVE_URL', 'http://127.0.0.1:8090'],
    ['ENCLAVE_URL', 'unix:/run/enclave.sock'],
    ['ENCLAVE_POLICY_FILE', undefined],
    ['ENTROPY_ALLOW_UNSIGNED', 'true'],
    ['REPORT_SOURCE', 'mock'],
  ])('refuses %s = %s', (name, value) => {
    expect(faultsOf(production)).toEqual([])
    expect(faultsOf({ ...production, [name]: value }).join()).toContain(name)
  })

  const orbitport = {
    ...production,
    ENTROPY_SOURCE: 'orbitport',
    ENTROPY_CLIENT_ID: 'client',
    ENTROPY_CLIENT_SECRET: 'secret',
    ENTROPY_AUTH_URL: 'https://auth.example/oauth/token',
  }

  test('accepts a named source without signatures if the setting allows it', () => {
    expect(faultsOf({ ...orbitport, ENTROPY_ALLOW_UNSIGNED: 'true' })).toEqual([])
    expect(faultsOf(orbitport).join()).toContain('ENTROPY_ALLOW_UNSIGNED')
  })

  const drand = { ...production, ENTROPY_SOURCE: 'drand' }

  test('accepts drand with receipts of version 2 only, and treats its samples as signed', () => {
    expect(faultsOf({ ...drand, RECEIPTS: '2' })).toEqual([])
    for (const RECEIPTS of [undefined, '1']) expect(faultsOf({ ...drand, RECEIPTS }).join()).toContain('RECEIPTS')
    expect(faultsOf({ ...drand, RECEIPTS: '2', ENTROPY_ALLOW_UNSIGNED: 'true' }).join()).toContain(
      'ENTROPY_ALLOW_UNSIGNED',
    )
  })

  test('a vault may name only the configured time sources', () => {
    const sourcesOf = (env: Env) => read(env).app.entropySources
    const keys = ['5a'.repeat(32), '6b'.repeat(32)]
    expect(sourcesOf({ ...production, ENTROPY_PUBLIC_KEY: keys.join() })).toEqual(
      keys.map((key) => ({ kind: 'satellite', key })),
    )
    expect(sourcesOf({ ...drand, RECEIPTS: '2' })).toEqual([{ kind: 'drand', ...quicknet }])
    expect(sourcesOf({ ...orbitport, ENTROPY_ALLOW_UNSIGNED: 'true' })).toEqual([{ kind: 'unsigned' }])
  })

  test('treats an empty beacon as unset', () => {
    const named = { ...drand, RECEIPTS: '2', ENTROPY_DRAND: 'quicknet' }
    expect(read({ ...named, ENTROPY_DRAND: '' })).toEqual(read(named))
  })

  test.each(['quicknet,quicknet', 'evilnet', `${'ab'.repeat(32)}:${'00'.repeat(96)}:1:3`, `${'ab'.repeat(32)}:1:3`])(
    'rejects the beacon: %s',
    (ENTROPY_DRAND) => {
      expect(faultsOf({ ...drand, RECEIPTS: '2', ENTROPY_DRAND }).join()).toContain('ENTROPY_DRAND')
    },
  )
})

test('requires version 2 receipts with witnesses, which the configuration hash does not cover', () => {
  const vkey = toVkey(witnesses[0]?.key as NoteKey)
  const log = { ...production, RECEIPTS: '2', LOG_WITNESSES: `${vkey}@https://w1.example/a` }
  expect(read(log).witnesses).toMatchObject([{ key: { name: 'w1.example' }, url: 'https://w1.example/a' }])
  expect(read(log).configHash).toBe(read({ ...production, RECEIPTS: '2' }).configHash)
  expect(faultsOf({ ...log, RECEIPTS: '1' }).join()).toContain('RECEIPTS')
})

describe('PUBLISH=checkpoints', () => {
  const vkey = toVkey(witnesses[0]?.key as NoteKey)
  const anchored: Env = {
    ...mock,
    RECEIPTS: '2',
    LOG_WITNESSES: `${vkey}@https://w1.example`,
    RPC_URL: 'http://127.0.0.1:8545',
    CHAIN_ID: '31337',
    ATTESTATIONS_ADDRESS: `0x${'ab'.repeat(20)}`,
    PUBLISHER_PRIVATE_KEY: `0x${'22'.repeat(32)}`,
    PUBLISH: 'checkpoints',
    LOG_WITNESS_ADDRESS: `0x${'cd'.repeat(20)}`,
    LOG_WITNESS_OWNER: `0x${'ef'.repeat(20)}`,
  }

  test('needs receipts of version 2 and witnesses', () => {
    expect(faultsOf(anchored)).toEqual([])
    expect(faultsOf({ ...anchored, LOG_WITNESSES: '' })).toEqual([
      'LOG_WITNESSES: required with PUBLISH=checkpoints: without a log there are none',
    ])
    expect(faultsOf({ ...anchored, RECEIPTS: '1', LOG_WITNESSES: '' })).toContain(
      'RECEIPTS: expected 2 with PUBLISH=checkpoints',
    )
  })

  test('needs nothing in a coordinator that does not publish, and in one that publishes events', () => {
    const unlogged = { ...anchored, RECEIPTS: '1', LOG_WITNESSES: '' }
    for (const changes of [{ WORKER: 'off' }, { PUBLISH: 'events' }, { PUBLISH: '' }])
      expect(faultsOf({ ...unlogged, ...changes })).toEqual([])
  })
})

describe('a policy that would accept more than intended', () => {
  test.each<[string, unknown]>([
    ['nothing', null],
    ['a list', []],
    ['no measurements', { ...policy, measurements: undefined }],
    ['an empty list', { ...policy, measurements: [] }],
    ['a measurement of any code', { ...policy, measurements: [{}] }],
    ['a misspelled register', { ...policy, measurements: [{ mrtd: '11'.repeat(48) }] }],
    ['a misspelled register along with', { ...policy, measurements: [{ ...measurement, rtmr4: '11'.repeat(48) }] }],
    ['a short register', { ...policy, measurements: [{ ...measurement, mrTd: '11' }] }],
    ['a measurement that is text', { ...policy, measurements: ['11'.repeat(48)] }],
    ['no configuration', { ...policy, configHashes: [] }],
    ['configurations as text, which has every part of itself', { ...policy, configHashes: '22'.repeat(32) }],
    ['an upper-case hash', { ...policy, configHashes: ['AA'.repeat(32)] }],
    ['no root secret', { ...policy, commitments: [] }],
    ['a root secret as text', { ...policy, commitments: '22'.repeat(32) }],
    ['a short commitment', { ...policy, commitments: ['22'] }],
    ['statuses as text', { ...policy, statuses: 'UpToDate' }],
    ['an unknown status', { ...policy, statuses: ['Revoked'] }],
    ['a floor that compares with nothing', { ...policy, minimumTcbEvaluationDataNumber: 'latest' }],
    ['no platform', { ...policy, platforms: [] }],
    ['a platform that does not say what it names', { ...policy, platforms: ['00806f050000'] }],
    ['a platform of no length', { ...policy, platforms: [{ ppid: '' }] }],
    ['a platform with two identities', { ...policy, platforms: [{ fmspc: '00806f050000', ppid: '44'.repeat(16) }] }],
    ['an event without payloads', { ...policy, events: { 'compose-hash': [] } }],
    ['invalid events', { ...policy, events: null }],
    ['an event in upper case, which no log has', { ...policy, events: { 'compose-hash': ['AB'] } }],
    ['an event with 0x', { ...policy, events: { 'compose-hash': ['0xab'] } }],
    ['an event as text', { ...policy, events: { 'key-provider': ['kms'] } }],
    ['an unknown member', { ...policy, mesurements: [] }],
    ['a looser switch', { ...policy, allowSeptVe: true }],
  ])('%s', (_, value) => {
    expect(faultsOf(production, { 'policy.json': JSON.stringify(value) }).join()).toContain('ENCLAVE_POLICY_FILE')
  })

  test('is not JSON', () => {
    expect(faultsOf(production, { 'policy.json': '{' }).join()).toContain('ENCLAVE_POLICY_FILE')
  })

  test.each([
    ['a member twice', JSON.stringify(policy).replace('{', '{"configHashes":[],')],
    [
      'a register twice, of which two readers could take another each',
      JSON.stringify(policy).replace('"mrTd"', `"mrTd":"${'33'.repeat(48)}","mrTd"`),
    ],
    ['more than a policy can hold', JSON.stringify(policy) + ' '.repeat(262_144)],
  ])('%s', (_, text) => {
    expect(faultsOf(production, { 'policy.json': text })).toEqual([
      'ENCLAVE_POLICY_FILE: expected JSON without duplicate members',
    ])
  })

  test('reads all well-formed members', () => {
    const whole = {
      ...policy,
      commitments: ['66'.repeat(32)],
      statuses: ['UpToDate', 'SWHardeningNeeded'],
      minimumTcbEvaluationDataNumber: 17,
      platforms: [{ fmspc: '00806f050000' }, { ppid: '44'.repeat(16) }, { platformInstanceId: '55'.repeat(16) }],
      events: { 'compose-hash': ['33'.repeat(32)] },
    }
    expect(read(production, { 'policy.json': JSON.stringify(whole) }).enclavePolicy).toEqual(whole)
  })
})

describe('a policy must list the registers that measure code', () => {
  const faultsWith = (changes: object) =>
    faultsOf(production, { 'policy.json': JSON.stringify({ ...policy, ...changes }) })
  const [mrTd, ...others] = codeRegisters
  const dstack = { 'compose-hash': ['33'.repeat(32)], 'app-id': ['44'.repeat(20)], 'key-provider': ['55'] }
  const withoutRtmr3 = { ...measurement, rtmr3: undefined }

  test('rejects MRTD without other registers in production and names the missing ones', () => {
    expect(faultsWith({ measurements: [{ mrTd: measurement[mrTd] }] })).toEqual([
      `ENCLAVE_POLICY_FILE: measurements[0] lacks ${others.join(', ')}, required in production (the events compose-hash, app-id, key-provider can replace rtmr3)`,
    ])
  })

  test.each(others)('rejects one without %s next to a complete one', (name) => {
    const [fault, ...rest] = faultsWith({ measurements: [measurement, { ...measurement, [name]: undefined }] })
    expect(fault).toMatch(`ENCLAVE_POLICY_FILE: measurements[1] lacks ${name}, required in production`)
    expect(rest).toEqual([])
  })

  test('events replace RTMR3 only if they name application, code and key provider', () => {
    expect(faultsWith({ measurements: [withoutRtmr3], events: dstack })).toEqual([])
    for (const name of Object.keys(dstack)) {
      const [fault] = faultsWith({ measurements: [withoutRtmr3], events: { ...dstack, [name]: undefined } })
      expect(fault).toContain('lacks rtmr3')
    }
  })

  test('development accepts fewer registers', () => {
    const { enclavePolicy } = read(
      { ...mock, ENCLAVE_POLICY_FILE: 'policy.json' },
      { 'policy.json': JSON.stringify({ ...policy, measurements: [{ mrTd: measurement[mrTd] }] }) },
    )
    expect(enclavePolicy.measurements).toEqual([{ mrTd: measurement[mrTd] }])
  })
})

describe('secrets in files', () => {
  const { DATABASE_URL: _, OIDC_GOOGLE_CLIENT_SECRET: __, ...rest } = production
  const named = { DATABASE_URL_FILE: 'database-url', OIDC_GOOGLE_CLIENT_SECRET_FILE: 'client-secret' }
  const files = {
    'policy.json': JSON.stringify(policy),
    'database-url': 'postgres://db.example/countersign\n',
    'client-secret': 'a client secret\n',
  }

  test('are read by file name and give the same configuration as values', () => {
    expect(read({ ...rest, ...named }, files)).toEqual(read(production))
  })

  test('reports a missing file as one fault', () => {
    expect(faultsOf({ ...production, DATABASE_URL: undefined, DATABASE_URL_FILE: 'gone' })).toEqual([
      'DATABASE_URL_FILE: cannot be read',
    ])
    expect(faultsOf({ ...production, ...named }, files)).toEqual([
      'OIDC_GOOGLE_CLIENT_SECRET, OIDC_GOOGLE_CLIENT_SECRET_FILE: both are set, expected only one',
      'DATABASE_URL, DATABASE_URL_FILE: both are set, expected only one',
    ])
  })
})

test.each(['NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS', 'LD_PRELOAD', 'LD_AUDIT', 'NODE_V8_COVERAGE', 'SSL_CERT_FILE'])(
  'rejects %s on real hardware, because reports do not cover it',
  (name) => {
    expect(faultsOf({ ...production, [name]: 'x' })).toEqual([
      `${name}: rejected on real hardware, because reports don’t cover it`,
    ])
    expect(faultsOf({ ...mock, [name]: 'x' })).toEqual([])
  },
)
