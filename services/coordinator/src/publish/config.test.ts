import { ConfigError, type Mode } from '@countersign/service'
import { describe, expect, test } from 'vitest'
import { inspectWorkerConfig, type PipelineConfig, readPipeline, readWorkerConfig, toPublishStartMs } from './config.ts'

const KEY = `0x${'a5'.repeat(32)}`
const chain = {
  RPC_URL: 'http://127.0.0.1:8545',
  CHAIN_ID: '31337',
  ATTESTATIONS_ADDRESS: `0x${'Ab'.repeat(20)}`,
  PUBLISHER_PRIVATE_KEY: KEY,
}

function read(
  env: Record<string, string>,
  changes: { files?: Record<string, string>; mode?: Mode; hasEmbeddedNode?: () => boolean } = {},
) {
  const { files = {}, mode = 'development', hasEmbeddedNode = () => true } = changes
  const faults: string[] = []
  const readFile = (path: string) => {
    const text = files[path]
    if (text === undefined) throw new Error('no such file')
    return text
  }
  const config = readPipeline(
    env,
    { readFile, mode, hasEmbeddedNode },
    (setting, problem) => void faults.push(`${setting}: ${problem}`),
  )
  return { config, faults }
}

describe('readPipeline', () => {
  test('does not publish without a chain', () => {
    expect(read({})).toEqual({ config: undefined, faults: [] })
    expect(read({ RPC_URL: '' })).toEqual({ config: undefined, faults: [] })
  })

  test('needs another pinner in an image without the embedded node', () => {
    const hasEmbeddedNode = () => false
    expect(read(chain, { hasEmbeddedNode }).faults).toEqual([
      'IPFS_PINNER: images have no embedded IPFS node; expected kubo or pinata',
    ])
    expect(read({ ...chain, IPFS_PINNER: 'kubo' }, { hasEmbeddedNode }).faults).toEqual([])
  })

  test('needs only a chain; the other settings have defaults', () => {
    expect(read(chain)).toEqual({
      faults: [],
      config: {
        pinner: { kind: 'helia', listen: undefined },
        chain: {
          rpcUrl: 'http://127.0.0.1:8545',
          chainId: 31337,
          contract: `0x${'ab'.repeat(20)}`,
          privateKey: KEY,
          confirmations: 6,
        },
        publishDelayMs: 0,
        gasPerDay: undefined,
        pinDeadlineMs: 3_600_000,
        publishDeadlineMs: 86_400_000,
        confirmIntervalMs: 4000,
      },
    })
  })

  test.each([1_000_000_000, 2_046_399_126, Number.MAX_SAFE_INTEGER])(
    'chain %d, of more than nine digits',
    (chainId) => {
      const { config, faults } = read({ ...chain, CHAIN_ID: String(chainId) })
      expect([config?.chain.chainId, faults]).toEqual([chainId, []])
    },
  )

  test('keeps receipts permanently by default', () => {
    expect(read(chain).config?.retentionMs).toBeUndefined()
    expect(read({ ...chain, RECEIPT_RETENTION_D: '30' }).config?.retentionMs).toBe(2_592_000_000)
  })

  test('needs IPFS_PINS_URL to drop receipts with Pinata', () => {
    const env = { ...chain, RECEIPT_RETENTION_D: '30', IPFS_PINNER: 'pinata', IPFS_API_TOKEN: 'token' }
    expect(read(env).faults).toEqual([expect.stringMatching(/^RECEIPT_RETENTION_D: requires IPFS_PINS_URL/)])
    expect(read({ ...env, IPFS_PINS_URL: 'https://api.pinata.cloud/psa' }).faults).toEqual([])
    const { RECEIPT_RETENTION_D: _, ...kept } = env
    expect(read(kept).faults).toEqual([])
  })

  describe('PUBLISH', () => {
    const anchored = {
      ...chain,
      PUBLISH: 'checkpoints',
      LOG_WITNESS_ADDRESS: `0x${'Ef'.repeat(20)}`,
      LOG_WITNESS_OWNER: `0x${'0A'.repeat(20)}`,
    }

    test.each(['events', ''])('"%s" publishes events, whatever the other settings are', (PUBLISH) => {
      const { config, faults } = read({ ...anchored, PUBLISH, LOG_WITNESS_OWNER: 'x' })
      expect([config?.logWitness, config?.publishDelayMs, faults]).toEqual([undefined, 0, []])
    })

    test('checkpoints: reads contract and owner, and waits 12 seconds by default', () => {
      const { config, faults } = read(anchored)
      expect(faults).toEqual([])
      expect(config).toMatchObject({
        logWitness: { contract: `0x${'ef'.repeat(20)}`, owner: `0x${'0a'.repeat(20)}` },
        publishDelayMs: 12_000,
      })
      expect(read({ ...anchored, PUBLISH_DELAY_MS: '0' }).config?.publishDelayMs).toBe(0)
    })

    test('checkpoints: the first run starts after a second at most', () => {
      const startMs = (env: Record<string, string>) => toPublishStartMs(read(env).config as PipelineConfig)
      expect(startMs(anchored)).toBe(1_000)
      expect(startMs({ ...anchored, PUBLISH_DELAY_MS: '300' })).toBe(300)
      expect(startMs({ ...chain, PUBLISH_DELAY_MS: '30000' })).toBe(30_000)
    })

    test.each(['event', 'Checkpoints', 'both'])('rejects %s', (PUBLISH) => {
      expect(read({ ...anchored, PUBLISH }).faults).toEqual(['PUBLISH: expected events or checkpoints'])
    })

    test.each(['', '0x', '0x12', `0x${'zz'.repeat(20)}`, 'ab'.repeat(20), `0x${'ab'.repeat(32)}`])(
      'rejects the address "%s"',
      (address) => {
        for (const name of ['LOG_WITNESS_ADDRESS', 'LOG_WITNESS_OWNER']) {
          expect(read({ ...anchored, [name]: address }).faults).toEqual([
            `${name}: expected 0x and 40 hex digits with PUBLISH=checkpoints`,
          ])
        }
      },
    )
  })

  test('reads the daily gas limit', () => {
    expect(read({ ...chain, PUBLISH_GAS_PER_DAY: '16777216' }).config?.gasPerDay).toBe(16_777_216n)
  })

  test('reads the key from a file', () => {
    const { PUBLISHER_PRIVATE_KEY: _, ...rest } = chain
    const { config, faults } = read({ ...rest, PUBLISHER_PRIVATE_KEY_FILE: '/key' }, { files: { '/key': `${KEY}\n` } })
    expect(faults).toEqual([])
    expect(config?.chain.privateKey).toBe(KEY)
  })

  const pinata = { kind: 'pinata', apiUrl: undefined, gatewayUrl: 'https://gateway.pinata.cloud', token: 't' }
  test.each<[Record<string, string>, object]>([
    [
      { IPFS_PINNER: 'helia', IPFS_LISTEN: '/ip4/0.0.0.0/tcp/4001' },
      { kind: 'helia', listen: '/ip4/0.0.0.0/tcp/4001' },
    ],
    [{ IPFS_PINNER: 'kubo' }, { kind: 'kubo', apiUrl: 'http://127.0.0.1:5001', token: undefined }],
    [
      { IPFS_PINNER: 'pinata', IPFS_API_TOKEN: 't' },
      { ...pinata, pinsUrl: undefined },
    ],
    [
      { IPFS_PINNER: 'pinata', IPFS_API_TOKEN: 't', IPFS_PINS_URL: 'https://api.pinata.cloud/psa/' },
      { ...pinata, pinsUrl: 'https://api.pinata.cloud/psa' },
    ],
  ])('%o pins with %o', (env, pinner) => {
    const { config, faults } = read({ ...chain, ...env })
    expect(faults).toEqual([])
    expect(config?.pinner).toEqual(pinner)
  })

  test.each<[string, Record<string, string>, RegExp]>([
    ['no chain id', { CHAIN_ID: '' }, /^CHAIN_ID/],
    ['an invalid chain id', { CHAIN_ID: '0' }, /^CHAIN_ID/],
    ['an RPC that is no URL', { RPC_URL: 'node' }, /^RPC_URL/],
    ['no contract', { ATTESTATIONS_ADDRESS: '' }, /^ATTESTATIONS_ADDRESS/],
    ['half a contract', { ATTESTATIONS_ADDRESS: '0x12' }, /^ATTESTATIONS_ADDRESS/],
    ['no key', { PUBLISHER_PRIVATE_KEY: '' }, /^PUBLISHER_PRIVATE_KEY/],
    ['two keys', { PUBLISHER_PRIVATE_KEY_FILE: '/key' }, /^PUBLISHER_PRIVATE_KEY/],
    ['an invalid key', { PUBLISHER_PRIVATE_KEY: 'secret-text' }, /^PUBLISHER_PRIVATE_KEY/],
    ['no confirmations', { CONFIRMATIONS: '0' }, /^CONFIRMATIONS/],
    ['a pinner of another name', { IPFS_PINNER: 'floppy', IPFS_API_TOKEN: 't' }, /^IPFS_PINNER/],
    ['Pinata without a token', { IPFS_PINNER: 'pinata' }, /^IPFS_API_TOKEN/],
    [
      'a pinning service in the clear',
      { IPFS_PINNER: 'pinata', IPFS_API_TOKEN: 't', IPFS_PINS_URL: 'http://pins.example' },
      /^IPFS_PINS_URL/,
    ],
    ['a day’s gas that one transaction may exceed', { PUBLISH_GAS_PER_DAY: '16777215' }, /^PUBLISH_GAS_PER_DAY/],
    [
      'a pinning service along with kubo',
      { IPFS_PINNER: 'kubo', IPFS_PINS_URL: 'https://psa.example' },
      /^IPFS_PINS_URL/,
    ],
    ['a retention of less than a week', { RECEIPT_RETENTION_D: '6' }, /^RECEIPT_RETENTION_D/],
    ['a retention that is no number', { RECEIPT_RETENTION_D: '30d' }, /^RECEIPT_RETENTION_D/],
    ['an interval of nothing', { CONFIRM_INTERVAL_MS: '0' }, /^CONFIRM_INTERVAL_MS/],
  ])('reports %s as one fault without secrets', (_, env, fault) => {
    const { faults } = read({ ...chain, ...env }, { files: { '/key': KEY } })
    expect(faults).toEqual([expect.stringMatching(fault)])
    expect(faults.join()).not.toContain('secret-text')
  })

  test('reports a missing key file', () => {
    const { PUBLISHER_PRIVATE_KEY: _, ...rest } = chain
    expect(read({ ...rest, PUBLISHER_PRIVATE_KEY_FILE: '/key' }).faults).toEqual([
      'PUBLISHER_PRIVATE_KEY_FILE: cannot be read',
    ])
  })

  test('rejects a token over plain http in production', () => {
    const env = { ...chain, IPFS_PINNER: 'kubo', IPFS_API_URL: 'http://kubo.example:5001' }
    expect(read(env, { mode: 'production' }).faults).toEqual([expect.stringMatching(/^IPFS_API_URL/)])
  })
})

describe('readWorkerConfig', () => {
  const readFile = () => ''

  test('reports a missing database and chain at once', () => {
    const { faults } = inspectWorkerConfig({}, { readFile })
    expect(faults.map(({ setting }) => setting)).toEqual(['DATABASE_URL', 'RPC_URL'])
    expect(() => readWorkerConfig({}, { readFile })).toThrow(ConfigError)
  })

  test('accepts a database and a chain', () => {
    const env = { ...chain, DATABASE_URL: 'postgres://localhost/countersign' }
    expect(readWorkerConfig(env, { readFile })).toMatchObject({
      databaseUrl: 'postgres://localhost/countersign',
      dataDir: '.countersign',
      metricsPort: undefined,
      config: { chain: { chainId: 31337 } },
    })
    expect(readWorkerConfig({ ...env, METRICS_PORT: '9464' }, { readFile }).metricsPort).toBe(9464)
    expect(() => readWorkerConfig({ ...env, METRICS_PORT: 'x' }, { readFile })).toThrow(ConfigError)
  })
})
