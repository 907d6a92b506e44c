import { createHash } from 'node:crypto'
import { quicknet, toEnclaveVersion } from '@countersign/protocol'
import { ConfigError, describeFault } from '@countersign/service'
import { describe, expect, test } from 'vitest'
import { createSigner } from '../../../packages/log/test/logs.ts'
import { keyOf, toVkeys, witnesses } from '../test/statementLog.ts'
import { readConfig } from './config.ts'

const valid = {
  MOCK_ATTESTATION: 'true',
  QUOTE_SOURCE: 'mock',
  ROOT_SECRET: 'file:/tmp/secret',
  OIDC_ISSUERS: 'https://b.example=two,https://a.example=one',
  ENTROPY_PUBLIC_KEY: '18edb664c40ab63537e6172fec37395f602afbba7a6c1b983ea80ba0b7f35f11',
}

const files: Record<string, string> = {
  'policy.json': JSON.stringify({
    measurements: [`${'11'.repeat(48)}:${'33'.repeat(32)}`],
    configHashes: ['22'.repeat(32)],
    minimumTcb: { Genoa: { snp: 23 } },
  }),
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
    if (error instanceof ConfigError) return error.faults.map(describeFault)
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

test('covered by quotes: issuers in order and the kinds of secrets, but no secret or path', () => {
  expect(read({ ...valid, CALLER_POLICY_FILE: 'policy.json', NODE_EXTRA_CA_CERTS: 'ca.pem' }).enclave).toEqual({
    issuers: [
      { issuer: 'https://a.example', audience: 'one', jwksOrigin: 'https://a.example' },
      { issuer: 'https://b.example', audience: 'two', jwksOrigin: 'https://b.example' },
    ],
    caSet: expect.stringMatching(/^bundled\+sha256:[0-9a-f]{64}$/),
    rootSecret: 'file',
    quoteSource: 'mock',
    callerPolicy: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    version: expect.stringMatching(/^1\.2\.3\+[0-9a-f]{64}$/),
  })
})

describe('settings covered by the quote', () => {
  const OTHER = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
  const versionOf = (changes: Record<string, string | undefined>) => read({ ...valid, ...changes }).enclave.version

  test('the version ends with the SHA-256 of their canonical JSON', () => {
    const { enclave, settings } = read(valid)
    const json = `{"entropy":[{"key":"${valid.ENTROPY_PUBLIC_KEY}","kind":"satellite"}],"implementations":[],"log":null,"sessions":"any"}`
    expect(settings).toEqual(JSON.parse(json))
    expect(enclave.version).toBe(`1.2.3+${createHash('sha256').update(json).digest('hex')}`)
  })

  test('another source changes the configuration, and the order of keys does not', () => {
    const both = `${valid.ENTROPY_PUBLIC_KEY},${OTHER}`
    const reversed = `${OTHER},${valid.ENTROPY_PUBLIC_KEY}`
    const versions = [
      {},
      { ENTROPY_PUBLIC_KEY: OTHER },
      { ENTROPY_PUBLIC_KEY: both },
      { ENTROPY_ALLOW_UNSIGNED: 'true' },
    ]
    expect(new Set(versions.map(versionOf)).size).toBe(4)
    expect(versionOf({ ENTROPY_PUBLIC_KEY: reversed })).toBe(versionOf({ ENTROPY_PUBLIC_KEY: both }))
  })

  test.each([
    ['none', undefined],
    ['not hex', 'XYZ'],
    ['too short', '11'.repeat(31)],
    ['twice', `${OTHER},${OTHER}`],
    ['of small order, under which one signature fits many samples', '00'.repeat(32)],
    ['no point of the curve', `02${'00'.repeat(31)}`],
  ])('refuses keys: %s', (_, ENTROPY_PUBLIC_KEY) => {
    expect(faultsOf({ ...valid, ENTROPY_PUBLIC_KEY }).join()).toContain('ENTROPY_PUBLIC_KEY')
  })

  test('sessions without a client key are allowed, unless SESSIONS is `bound`, which changes the version', () => {
    for (const SESSIONS of [undefined, '', 'any']) {
      const { enclave, settings } = read({ ...valid, SESSIONS })
      expect([settings.sessions, enclave.version]).toEqual(['any', read(valid).enclave.version])
    }
    const bound = read({ ...valid, SESSIONS: 'bound' })
    expect(bound.settings.sessions).toBe('bound')
    expect(bound.enclave.version).toBe(toEnclaveVersion('1.2.3', bound.settings))
    expect(bound.enclave.version).not.toBe(read(valid).enclave.version)
  })

  test.each(['Bound', 'bound ', 'true', 'none', 'any,bound'])('rejects SESSIONS=%s', (SESSIONS) => {
    expect(faultsOf({ ...valid, SESSIONS }).join()).toContain('SESSIONS: expected any or bound')
  })

  test('a source that does not sign needs no key', () => {
    const { settings } = read({ ...valid, ENTROPY_PUBLIC_KEY: undefined, ENTROPY_ALLOW_UNSIGNED: 'true' })
    expect(settings.entropy).toEqual([{ kind: 'unsigned' }])
  })
})

describe('a log covered by the quote', () => {
  const [one, two] = witnesses.map(keyOf) as [string, string]
  const [vkey, otherVkey] = toVkeys(witnesses) as [string, string]
  const logged = { ...valid, LOG_ORIGINS: 'log.example/b,log.example/a', LOG_WITNESSES: witnesses.map(keyOf).join() }

  test('without origins there is none', () => {
    expect(read(valid)).toMatchObject({ settings: { log: null }, logOrigins: [] })
  })

  test('the quorum is the smallest majority by default, and the order of origins is not covered', () => {
    const { settings, logOrigins, enclave } = read(logged)
    const log = { origins: ['log.example/a', 'log.example/b'], witnesses: witnesses.map(keyOf).toSorted(), quorum: 2 }
    expect(settings.log).toEqual(log)
    expect(logOrigins).toEqual(['log.example/b', 'log.example/a'])
    expect(enclave.version).toBe(toEnclaveVersion('1.2.3', settings))
    const other = read({ ...logged, LOG_ORIGINS: 'log.example/a', LOG_SERVICE_ORIGINS: logged.LOG_ORIGINS })
    expect(other.enclave.version).toBe(enclave.version)
    expect(other.logOrigins).toEqual(['log.example/a'])
    expect(read({ ...logged, LOG_QUORUM: '3' }).enclave.version).not.toBe(enclave.version)
  })

  test('witnesses by verifier key, with or without an address, equal those by hex keys', () => {
    const LOG_WITNESSES = `${vkey}@https://w1.example/path+1, ${otherVkey},${keyOf(witnesses[2] as never)}`
    expect(read({ ...logged, LOG_WITNESSES }).enclave.version).toBe(read(logged).enclave.version)
  })

  test.each<[string, Record<string, string | undefined>, string]>([
    ['witnesses without origins', { LOG_ORIGINS: '' }, 'LOG_ORIGINS'],
    ['a space in an origin', { LOG_ORIGINS: 'log example' }, 'LOG_ORIGINS'],
    ['a plus in an origin', { LOG_ORIGINS: 'log+example' }, 'LOG_ORIGINS'],
    ['an origin of no part of the service', { LOG_SERVICE_ORIGINS: 'log.example/a' }, 'LOG_ORIGINS'],
    ['an origin twice', { LOG_ORIGINS: 'a,a', LOG_SERVICE_ORIGINS: 'a,b' }, 'LOG_ORIGINS'],
    ['an origin of the service twice', { LOG_ORIGINS: 'a', LOG_SERVICE_ORIGINS: 'a,a' }, 'LOG_SERVICE_ORIGINS'],
    ['no witness', { LOG_WITNESSES: undefined }, 'LOG_WITNESSES'],
    ['a witness twice, by key and by hex', { LOG_WITNESSES: `${vkey},${one}` }, 'LOG_WITNESSES'],
    ['a key of a log', { LOG_WITNESSES: toVkeys([createSigner('log.example')]).join() }, 'LOG_WITNESSES'],
    ['a verifier key with another id', { LOG_WITNESSES: vkey.replace(/\+.{8}\+/, '+00000000+') }, 'LOG_WITNESSES'],
    ['a key of small order', { LOG_WITNESSES: '00'.repeat(32) }, 'LOG_WITNESSES'],
    ['an address without a key', { LOG_WITNESSES: 'https://w1.example' }, 'LOG_WITNESSES'],
    ['half of the witnesses', { LOG_WITNESSES: `${one},${two}`, LOG_QUORUM: '1' }, 'LOG_QUORUM'],
    ['more than the witnesses', { LOG_QUORUM: '4' }, 'LOG_QUORUM'],
    ['a quorum in words', { LOG_QUORUM: 'two' }, 'LOG_QUORUM'],
  ])('refuses %s', (_, changes, name) => {
    expect(faultsOf({ ...logged, ...changes })).toEqual([expect.stringMatching(`^${name}: `)])
  })
})

describe('beacons and implementations covered by the quote', () => {
  const CHAIN = quicknet.chainHash
  const address = `0x${'ab'.repeat(20)}`
  const [lower, upper] = [`0x${'11'.repeat(20)}`, `0x${'AB'.repeat(20)}`]

  test('quicknet by name equals quicknet by its parameters, and needs no other key', () => {
    const { key, genesisS, periodS } = quicknet
    const named = read({ ...valid, ENTROPY_PUBLIC_KEY: undefined, ENTROPY_DRAND: 'quicknet' })
    expect(named.settings.entropy).toEqual([{ kind: 'drand', ...quicknet }])
    const spelt = { ...valid, ENTROPY_PUBLIC_KEY: undefined, ENTROPY_DRAND: `${CHAIN}:${key}:${genesisS}:${periodS}` }
    expect(read(spelt).enclave.version).toBe(named.enclave.version)
  })

  test('addresses are sorted and in lower case; each list is another configuration', () => {
    const { settings, enclave } = read({ ...valid, IMPLEMENTATIONS: `${upper},${lower}` })
    expect(settings.implementations).toEqual([lower, address])
    expect(read(valid).settings.implementations).toEqual([])
    const versions = [undefined, lower, upper].map(
      (IMPLEMENTATIONS) => read({ ...valid, IMPLEMENTATIONS }).enclave.version,
    )
    expect(new Set([enclave.version, ...versions]).size).toBe(4)
  })

  test.each([
    ['another name', 'mainnet'],
    ['twice', 'quicknet,quicknet'],
    ['no key', `${CHAIN}::1:3`],
    ['a key that is no point', `${CHAIN}:${'11'.repeat(96)}:1:3`],
    ['the point at infinity', `${CHAIN}:c0${'00'.repeat(95)}:1:3`],
    ['no period', `${CHAIN}:${quicknet.key}:1:0`],
    ['a period that is a fraction', `${CHAIN}:${quicknet.key}:1:0.5`],
    ['a genesis in hex', `${CHAIN}:${quicknet.key}:0x1:3`],
    ['a number too many', `${CHAIN}:${quicknet.key}:1:3:4`],
  ])('refuses a beacon: %s', (_, ENTROPY_DRAND) => {
    expect(faultsOf({ ...valid, ENTROPY_DRAND })).toEqual([expect.stringContaining('ENTROPY_DRAND')])
  })

  test.each([
    ['not hex', '0xyz'],
    ['19 bytes', `0x${'11'.repeat(19)}`],
    ['without 0x', '11'.repeat(20)],
    ['twice, in two cases', `${address},${upper}`],
  ])('rejects implementations: %s', (_, IMPLEMENTATIONS) => {
    expect(faultsOf({ ...valid, IMPLEMENTATIONS })).toEqual([expect.stringContaining('IMPLEMENTATIONS')])
  })
})

describe('ROOT_SECRET=attested', () => {
  const key = (first: string) => `${first.padStart(2, '0')}${'07'.repeat(31)}`
  const registers = ['mrTd', 'rtmr0', 'rtmr1', 'rtmr2', 'rtmr3', 'mrConfigId', 'mrOwner', 'mrOwnerConfig']
  const measurement = Object.fromEntries(registers.map((name) => [name, '11'.repeat(48)]))
  const policy = {
    measurements: [measurement],
    custodians: { threshold: 2, keys: [key('9'), key('a')] },
  }
  const attested = {
    ...valid,
    ROOT_SECRET: 'attested',
    ROOT_SECRET_POLICY_FILE: 'root.json',
    ROOT_SECRET_FROM: 'join:https://a.example:8090,http://127.0.0.1:8091',
  }
  files['root.json'] = JSON.stringify(policy)

  test('covers the policy in quotes, but not the source of the secret', () => {
    const all = [
      attested,
      { ...attested, ROOT_SECRET_FROM: 'genesis', ROOT_SECRET_BACKUP_FILE: 'b.json' },
      { ...attested, ROOT_SECRET_FROM: 'recover', ROOT_SECRET_BACKUP_FILE: 'b.json' },
      { ...attested, ROOT_SECRET_FROM: 'recover', ROOT_SECRET_BACKUP_FILE: 'b.json', ROOT_SECRET_NEW_BACKUP_FILE: 'c' },
      { ...attested, COLLATERAL_URL: 'https://pccs.example/' },
    ]
    for (const env of all) expect(read(env).enclave).toEqual(read(attested).enclave)
    expect(read(attested).enclave.rootSecret).toMatch(/^attested:sha256:[0-9a-f]{64}$/)
    files['other.json'] = JSON.stringify({ ...policy, platforms: [{ fmspc: '00906ed50000' }] })
    const other = read({ ...attested, ROOT_SECRET_POLICY_FILE: 'other.json' })
    expect(other.enclave.rootSecret).not.toBe(read(attested).enclave.rootSecret)
  })

  test('rejects duplicate members, which two readers could read differently', () => {
    files['twice.json'] = files['root.json']?.replace('"threshold":2', '"threshold":3,"threshold":2') ?? ''
    const faults = faultsOf({ ...attested, ROOT_SECRET_POLICY_FILE: 'twice.json' })
    expect(faults).toEqual(['ROOT_SECRET_POLICY_FILE: expected JSON without duplicate members'])
  })

  const real = {
    ...attested,
    ROOT_SECRET_POLICY_FILE: 'real.json',
    NODE_ENV: 'production',
    MOCK_ATTESTATION: 'false',
    QUOTE_SOURCE: 'configfs',
    LISTEN: 'https',
    CALLER_POLICY_FILE: 'policy.json',
  }
  files['real.json'] = JSON.stringify({ ...policy, platforms: [{ ppid: '44'.repeat(16) }] })

  test('is accepted in production', () => {
    expect(faultsOf(real)).toEqual([])
    expect(read(real).rootSecret).toMatchObject({
      from: { kind: 'join', urls: ['https://a.example:8090', 'http://127.0.0.1:8091'] },
      collateralUrl: 'https://api.trustedservices.intel.com',
    })
  })

  test.each(['production', 'development'])('real hardware in %s needs platforms in its policy', (NODE_ENV) => {
    expect(faultsOf({ ...real, NODE_ENV, ROOT_SECRET_POLICY_FILE: 'root.json' })).toEqual([
      expect.stringMatching(/^ROOT_SECRET_POLICY_FILE: missing platforms/),
    ])
  })

  test.each<[string, Record<string, string | undefined>]>([
    ['ROOT_SECRET', { ROOT_SECRET_POLICY_FILE: 'real.json', MOCK_ATTESTATION: 'false', QUOTE_SOURCE: 'dstack' }],
    ['ROOT_SECRET_POLICY_FILE', { ROOT_SECRET_POLICY_FILE: undefined }],
    ['ROOT_SECRET_POLICY_FILE', { ROOT_SECRET_POLICY_FILE: 'missing.json' }],
    ['ROOT_SECRET_FROM', { ROOT_SECRET_FROM: undefined }],
    ['ROOT_SECRET_FROM', { ROOT_SECRET_FROM: 'dstack' }],
    ['ROOT_SECRET_FROM', { ROOT_SECRET_FROM: 'join:' }],
    ['ROOT_SECRET_FROM', { ROOT_SECRET_FROM: 'join:enclave-a:8090' }],
    ['ROOT_SECRET_FROM', { ROOT_SECRET_FROM: 'join:http://a.example:8090' }],
    ['ROOT_SECRET_FROM', { ROOT_SECRET_FROM: 'join:https://me:secret@a.example' }],
    ['ROOT_SECRET_FROM', { ROOT_SECRET_FROM: 'join:https://a.example/path' }],
    ['ROOT_SECRET_FROM', { ROOT_SECRET_FROM: 'join:https://a.example,https://a.example' }],
    ['ROOT_SECRET_BACKUP_FILE', { ROOT_SECRET_FROM: 'genesis' }],
    ['ROOT_SECRET_BACKUP_FILE', { ROOT_SECRET_FROM: 'recover' }],
    ['ROOT_SECRET_NEW_BACKUP_FILE', { ROOT_SECRET_NEW_BACKUP_FILE: 'c.json' }],
    [
      'ROOT_SECRET_NEW_BACKUP_FILE',
      { ROOT_SECRET_FROM: 'recover', ROOT_SECRET_BACKUP_FILE: 'b', ROOT_SECRET_NEW_BACKUP_FILE: 'b' },
    ],
    ['COLLATERAL_URL', { COLLATERAL_URL: 'http://pccs.example' }],
    ['COLLATERAL_URL', { COLLATERAL_URL: 'pccs' }],
    ['COLLATERAL_URL', { COLLATERAL_URL: 'https://pccs.example/?key=secret@' }],
    ['COLLATERAL_URL', { COLLATERAL_URL: 'https://me:secret@pccs.example' }],
  ])('%s: %o', (name, changes) => {
    const faults = faultsOf({ ...attested, ...changes })
    expect(faults).toEqual([expect.stringMatching(new RegExp(`^${name}:`))])
    expect(faults.join()).not.toContain('secret@')
  })

  test.each(['ROOT_SECRET_FROM', 'ROOT_SECRET_POLICY_FILE', 'ROOT_SECRET_BACKUP_FILE', 'ROOT_SECRET_NEW_BACKUP_FILE'])(
    'rejects %s for another kind of secret',
    (name) => {
      expect(faultsOf({ ...valid, [name]: 'x' })).toEqual([`${name}: only for ROOT_SECRET=attested`])
    },
  )

  test('lists every fault of its policy', () => {
    files['bad-root.json'] = JSON.stringify({ ...policy, measurements: [], platform: ['00906ed50000'] })
    expect(faultsOf({ ...attested, ROOT_SECRET_POLICY_FILE: 'bad-root.json' })).toEqual([
      'ROOT_SECRET_POLICY_FILE: unknown member platform',
      'ROOT_SECRET_POLICY_FILE: invalid measurements: malformed or empty',
    ])
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
      'privilege levels, which no verifier accepts along with 0',
      JSON.stringify({ measurements: ['11'.repeat(48)], configHashes: ['22'.repeat(32)], vmpls: [0] }),
    ],
    [
      'a misspelled patch level',
      JSON.stringify({
        measurements: ['11'.repeat(48)],
        configHashes: ['22'.repeat(32)],
        minimumTcb: { Milan: { SNP: 24 } },
      }),
    ],
    ...(
      [
        ['HOST_DATA of 31 bytes', { measurements: [`${'11'.repeat(48)}:${'33'.repeat(31)}`] }],
        ['an empty HOST_DATA', { measurements: [`${'11'.repeat(48)}:`] }],
        ['no patch levels for a product', { minimumTcb: { Genoa: {} } }],
        ['chips by their first 8 bytes', { chips: ['44'.repeat(8)] }],
        ['no chips', { chips: [] }],
        ['a word for a switch', { requireRevocations: 'yes' }],
      ] satisfies [string, object][]
    ).map(([name, members]): [string, string] => [
      name,
      JSON.stringify({ measurements: ['11'.repeat(48)], configHashes: ['22'.repeat(32)], ...members }),
    ]),
    ['no JSON', '{'],
    [
      'a member twice',
      `{"measurements":["${'11'.repeat(48)}"],"configHashes":["${'22'.repeat(32)}"],"requireRevocations":false,"requireRevocations":true}`,
    ],
  ])('a caller policy with %s', (_, text) => {
    files['bad.json'] = text
    expect(faultsOf({ ...valid, CALLER_POLICY_FILE: 'bad.json' }).join()).toContain('CALLER_POLICY_FILE')
  })

  test('rejects a caller policy without HOST_DATA and a minimum TCB in production', () => {
    files['development.json'] = JSON.stringify({ measurements: ['11'.repeat(48)], configHashes: ['22'.repeat(32)] })
    const withPolicy = { ...valid, CALLER_POLICY_FILE: 'development.json' }
    expect(read(withPolicy).callerPolicy.kind).toBe('attested')
    const faults = faultsOf({ ...withPolicy, NODE_ENV: 'production' })
    expect(faults.filter((text) => text.startsWith('CALLER_POLICY_FILE'))).toEqual([
      'CALLER_POLICY_FILE: invalid measurements: production requires MEASUREMENT:HOST_DATA',
      'CALLER_POLICY_FILE: invalid minimumTcb: production requires a value above zero for each product',
    ])
  })

  test.each<[string, object]>([
    ['of zero', { Genoa: { snp: 0, ucode: 0 } }],
    ['of zero for one product', { Genoa: { snp: 23 }, Turin: { snp: 0 } }],
  ])('production treats a minimum TCB %s as missing', (_, minimumTcb) => {
    files['zero.json'] = JSON.stringify({ ...JSON.parse(files['policy.json'] ?? ''), minimumTcb })
    const withPolicy = { ...valid, CALLER_POLICY_FILE: 'zero.json' }
    expect(read(withPolicy).callerPolicy.kind).toBe('attested')
    const faults = faultsOf({ ...withPolicy, NODE_ENV: 'production' })
    expect(faults.filter((text) => text.startsWith('CALLER_POLICY_FILE'))).toEqual([
      'CALLER_POLICY_FILE: invalid minimumTcb: production requires a value above zero for each product',
    ])
  })

  test.each([
    'NODE_TLS_REJECT_UNAUTHORIZED',
    'NODE_OPTIONS',
    'NODE_USE_SYSTEM_CA',
    'NODE_PATH',
    'NODE_COMPILE_CACHE',
    'SECP256K1_PREBUILD',
    'npm_config_arch',
    'LD_PRELOAD',
    'LD_AUDIT',
    'NODE_V8_COVERAGE',
    'GLIBC_TUNABLES',
    'LD_LIBRARY_PATH',
    'OPENSSL_CONF',
    'OPENSSL_MODULES',
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

  test('treats an empty agent socket as unset', () => {
    const real = { ...valid, MOCK_ATTESTATION: 'false', QUOTE_SOURCE: 'dstack', ROOT_SECRET: 'dstack' }
    expect(read({ ...real, DSTACK_SOCKET: '' })).toEqual(read(real))
  })

  test('lists all at once', () => {
    expect(faultsOf({ PORT: 'x', BATCH_LIMIT: 'y', LISTEN: 'z' }).length).toBeGreaterThanOrEqual(6)
  })
})
