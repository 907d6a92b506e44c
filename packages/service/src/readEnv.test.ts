import { describe, expect, test } from 'vitest'
import {
  ConfigError,
  type Fault,
  findUnmeasured,
  readBoolean,
  readInteger,
  readList,
  readSecret,
  readUrl,
  refuseMisspelt,
} from './readEnv.ts'

/** Runs a reader on the setting NAME, and returns its value with the faults. */
function read<Value>(text: string | undefined, reader: (env: { NAME?: string }, fault: Fault) => Value) {
  const faults: string[] = []
  const value = reader(
    text === undefined ? {} : { NAME: text },
    (setting, problem) => void faults.push(`${setting}: ${problem}`),
  )
  return { value, faults }
}

describe('readBoolean', () => {
  const boolean = (text: string | undefined) => read(text, (env, fault) => readBoolean(env, 'NAME', fault))

  test.each([
    [undefined, false],
    ['', false],
    ['false', false],
    ['true', true],
  ])('%j is %j', (text, value) => {
    expect(boolean(text)).toEqual({ value, faults: [] })
  })

  test.each(['yes', '1', '0', 'TRUE', ' true', 'no'])('%j is a fault', (text) => {
    expect(boolean(text).faults).toEqual(['NAME: expected true or false'])
  })
})

describe('readInteger', () => {
  const integer = (text: string | undefined) =>
    read(text, (env, fault) => readInteger(env, 'NAME', { fallback: 7, min: 1, max: 100 }, fault))

  test.each([
    [undefined, 7],
    ['', 7],
    ['1', 1],
    ['100', 100],
    ['007', 7],
  ])('%j is %j', (text, value) => {
    expect(integer(text)).toEqual({ value, faults: [] })
  })

  test.each(['0', '101', '-1', '1.5', '1e1', '0x10', ' 5', '5 ', 'five', '٣', '0000000001', 'NaN', 'Infinity'])(
    '%j is a fault',
    (text) => {
      expect(integer(text).faults).toEqual(['NAME: expected a whole number from 1 to 100'])
    },
  )

  test('accepts as many digits as the maximum has', () => {
    const chain = (text: string) =>
      read(text, (env, fault) => readInteger(env, 'NAME', { fallback: 1, min: 1, max: Number.MAX_SAFE_INTEGER }, fault))
    for (const value of [999_999_999, 1_000_000_000, 11_155_111_155, Number.MAX_SAFE_INTEGER]) {
      expect(chain(String(value))).toEqual({ value, faults: [] })
    }
    for (const text of ['9007199254740992', '9007199254740993', '00000000000000001', '1e9']) {
      expect(chain(text).faults).toHaveLength(1)
    }
  })

  test('accepts a setting without a fallback', () => {
    const port = (text?: string) =>
      read(text, (env, fault) => readInteger(env, 'NAME', { fallback: undefined, min: 0, max: 65_535 }, fault))
    expect(port()).toEqual({ value: undefined, faults: [] })
    expect(port('8080')).toEqual({ value: 8080, faults: [] })
    expect(port('70000').faults).toEqual(['NAME: expected a whole number from 0 to 65535'])
  })
})

describe('readSecret', () => {
  const files: Record<string, string> = { 'secret.txt': 'from a file\n', 'empty.txt': '\n' }
  const secret = (env: Record<string, string>) => {
    const faults: string[] = []
    const readFile = (path: string) => {
      const text = files[path]
      if (text === undefined) throw new Error('gone')
      return text
    }
    return {
      value: readSecret(env, 'NAME', readFile, (setting, problem) => void faults.push(`${setting}: ${problem}`)),
      faults,
    }
  }

  test.each<[Record<string, string>, string]>([
    [{}, ''],
    [{ NAME: 'given' }, 'given'],
    [{ NAME_FILE: 'secret.txt' }, 'from a file'],
    [{ NAME: '', NAME_FILE: 'secret.txt' }, 'from a file'],
  ])('%j is %j', (env, value) => {
    expect(secret(env)).toEqual({ value, faults: [] })
  })

  test.each<[Record<string, string>, string]>([
    [{ NAME: 'given', NAME_FILE: 'secret.txt' }, 'NAME, NAME_FILE: both are set, expected only one'],
    [{ NAME_FILE: 'gone.txt' }, 'NAME_FILE: cannot be read'],
    [{ NAME_FILE: 'empty.txt' }, 'NAME_FILE: is empty'],
  ])('%j is a fault', (env, fault) => {
    expect(secret(env)).toEqual({ value: undefined, faults: [fault] })
  })
})

test('findUnmeasured lists variables that load code or change trust', () => {
  const bad = [
    'LD_PRELOAD',
    'LD_AUDIT',
    'LD_LIBRARY_PATH',
    'NODE_OPTIONS',
    'NODE_V8_COVERAGE',
    'NODE_PATH',
    'NODE_TLS_REJECT_UNAUTHORIZED',
    'SSL_CERT_FILE',
    'SSL_CERT_DIR',
    'OPENSSL_CONF',
    'npm_config_arch',
    'PREBUILDS_ONLY',
  ]
  const env = Object.fromEntries([...bad, 'NODE_ENV', 'PATH', 'PORT', 'npm_config_cache'].map((name) => [name, 'x']))
  expect(findUnmeasured(env)).toEqual(bad)
  expect(findUnmeasured({ NODE_OPTIONS: undefined })).toEqual([])
})

test('readList splits at commas, without white space and empty items', () => {
  expect(readList('a, b ,,c,')).toEqual(['a', 'b', 'c'])
  expect(readList('')).toEqual([])
  expect(readList(undefined)).toEqual([])
})

describe('readUrl', () => {
  const url = (text: string | undefined) =>
    read(text, (env, fault) => readUrl(env, 'NAME', 'https://fallback.example', fault))

  test.each([
    [undefined, 'https://fallback.example'],
    ['', 'https://fallback.example'],
    ['https://a.example', 'https://a.example'],
    ['http://127.0.0.1:8080//', 'http://127.0.0.1:8080'],
    ['https://a.example/path/', 'https://a.example/path'],
  ])('%j is %j', (text, value) => {
    expect(url(text)).toEqual({ value, faults: [] })
  })

  test.each(['a.example', 'ftp://a.example', 'javascript:alert(1)', 'https://'])('%j is a fault', (text) => {
    expect(url(text).faults).toEqual(['NAME: expected an http or https URL'])
  })
})

describe('refuseMisspelt', () => {
  const names = [
    'HOST',
    'WORKER',
    'RPC_URL',
    'DATABASE_URL',
    'DATABASE_URL_FILE',
    'ENTROPY_PUBLIC_KEY',
    'RATE_LIMIT_SIGN',
    'DATA_DIR',
    'ALLOWED_CHAIN_IDS',
    'SIGN_QUOTA_PER_DAY',
    'IPFS_API_TOKEN',
  ]
  const faultsOf = (...given: string[]) => {
    const faults: string[] = []
    refuseMisspelt(
      Object.fromEntries(given.map((name) => [name, 'x'])),
      names,
      (setting, problem) => void faults.push(`${setting}: ${problem}`),
    )
    return faults
  }

  test.each([
    ['DATABASE_URI', 'DATABASE_URL'],
    ['database_url', 'DATABASE_URL'],
    ['DATABASE-URL', 'DATABASE_URL'],
    ['DATABSE_URL', 'DATABASE_URL'],
    ['DATABASE_ULR', 'DATABASE_URL'],
    ['ENTROPY_PUBLIC_KEYS', 'ENTROPY_PUBLIC_KEY'],
    ['ENTROPY_PUBILC_KYE', 'ENTROPY_PUBLIC_KEY'],
    ['RATELIMIT_SIGN', 'RATE_LIMIT_SIGN'],
    ['RPC_URI', 'RPC_URL'],
    ['ALLOWED_CHAINS', 'ALLOWED_CHAIN_IDS'],
    ['SIGN_QUOTA', 'SIGN_QUOTA_PER_DAY'],
    ['RATE_LIMIT', 'RATE_LIMIT_SIGN'],
    ['rate-limits', 'RATE_LIMIT_SIGN'],
    ['RPC_URL_FILE', 'RPC_URL'],
  ])('%s: did you mean %s?', (name, meant) => {
    expect(faultsOf(name)).toEqual([`${name}: unknown; did you mean ${meant}?`])
  })

  test('accepts our settings and other programs’ variables', () => {
    const others = [
      'PATH',
      'HOSTNAME',
      'HOSTS',
      'WORKERS',
      'XDG_DATA_DIRS',
      'ENCLAVE_SERVICE_PORT',
      'PGDATABASE',
      'DATA',
      'API_TOKEN',
      'PUBLIC_KEY',
      'IPFS_PATH',
      'IPFS',
      'RATE',
      'WORKER_PORT',
      'HOST_FILE',
      'DATABASE_URL_UNPOOLED',
      'RATE_LIMITER_SERVICE_HOST',
      'npm_config_cache',
      '_',
      '',
    ]
    expect(faultsOf(...names, ...others)).toEqual([])
  })
})

test('a ConfigError counts its faults', () => {
  const odd = { setting: 'PORT', problem: 'odd', fix: 'Use another.' }
  expect(new ConfigError([odd]).message).toBe('the configuration has 1 fault')
  const error = new ConfigError([odd, odd])
  expect(error).toMatchObject({
    name: 'ConfigError',
    message: 'the configuration has 2 faults',
    faults: [odd, odd],
  })
})
