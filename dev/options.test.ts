import { describe, expect, test } from 'vitest'
import { parseOptions, USAGE } from './options.ts'

const faultOf = (...args: string[]) => {
  const parsed = parseOptions(args)
  return parsed.kind === 'fault' ? parsed.fault : parsed.kind
}

describe('the options of npm run dev', () => {
  test('has a default for every option', () => {
    expect(parseOptions([])).toEqual({
      kind: 'run',
      options: {
        reset: false,
        databaseUrl: undefined,
        quoteLatencyMs: 39,
        hasWeb: true,
        hasLog: false,
        hasCheckpoints: false,
        origins: [],
        directUrl: undefined,
        isVerbose: false,
        ports: { web: 5173, demo: 5174, coordinator: 8080, enclave: 8090, oidc: 9090, chain: 8545 },
        stateDir: undefined,
      },
    })
  })

  test('reads each option', () => {
    const args =
      '--database postgres://localhost/dev --quote-latency 0 --no-web --web-port 4 --demo-port 5 --port 1 --enclave-port 2 --oidc-port 65535 --chain-port 3 --verbose --log --checkpoints'
    expect(parseOptions([...args.split(' '), '--state', '/tmp/state'])).toEqual({
      kind: 'run',
      options: {
        reset: false,
        databaseUrl: 'postgres://localhost/dev',
        quoteLatencyMs: 0,
        hasWeb: false,
        hasLog: true,
        hasCheckpoints: true,
        origins: [],
        directUrl: undefined,
        isVerbose: true,
        ports: { web: 4, demo: 5, coordinator: 1, enclave: 2, oidc: 65_535, chain: 3 },
        stateDir: '/tmp/state',
      },
    })
    expect(parseOptions(['--reset'])).toMatchObject({ options: { reset: true } })
  })

  test('--help wins over all other valid options', () => {
    expect(parseOptions(['--help'])).toEqual({ kind: 'help' })
    expect(parseOptions(['-h', '--port', 'x'])).toEqual({ kind: 'help' })
  })

  test('names an unknown option or one without its value', () => {
    expect(faultOf('--rest')).toContain("'--rest'")
    expect(faultOf('--port')).toContain('--port')
    expect(faultOf('--reset=yes')).toContain('--reset')
  })

  test.each(['', '0', '65536', '1e3'])('rejects the port %j', (text) => {
    for (const name of ['--port', '--web-port', '--demo-port', '--enclave-port', '--oidc-port', '--chain-port']) {
      expect(faultOf(`${name}=${text}`)).toBe(`${name}: expected a whole number from 1 to 65535`)
    }
  })

  test.each(['', '-1', '60001', 'fast'])('rejects the latency %j', (text) => {
    expect(faultOf(`--quote-latency=${text}`)).toBe('--quote-latency: expected a whole number from 0 to 60000')
  })

  test('rejects the same port for two services', () => {
    expect(faultOf('--port', '8090')).toBe('each service needs a different port')
  })

  test.each(['', 'localhost', 'mysql://localhost/dev'])('rejects the database %j', (text) => {
    expect(faultOf(`--database=${text}`)).toBe('--database: expected postgres://…')
  })

  test('rejects --reset with --database: the keys would be deleted, but not their wallets', () => {
    expect(faultOf('--reset', '--database', 'postgres://localhost/dev')).toContain('--reset')
  })

  test('rejects --checkpoints without --log', () => {
    expect(faultOf('--checkpoints')).toBe('--checkpoints: requires --log')
  })

  test('the usage names every option', () => {
    const names = [...USAGE.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, name]) => name ?? '')
    expect(names).toContain('--no-web')
    // The error may be about its value, but not about its name.
    for (const name of names) expect(faultOf(name)).not.toContain('Unknown option')
    expect(names).toHaveLength(17)
  })

  test('accepts several origins, as browsers write them', () => {
    const origins = ['http://localhost:3000', 'https://app.example']
    expect(parseOptions(origins.flatMap((origin) => ['--origin', origin]))).toMatchObject({ options: { origins } })
  })

  test.each(['', 'localhost:3000', 'http://localhost:3000/', 'http://localhost:80', '*', 'http://user@localhost'])(
    'rejects the origin %j',
    (text) => {
      expect(faultOf('--origin', 'http://localhost:3000', `--origin=${text}`)).toContain(
        '--origin: expected only scheme',
      )
    },
  )

  test('accepts the page of a direct sign-in, as the provider compares it', () => {
    const directUrl = 'http://localhost:3000/'
    expect(parseOptions(['--direct', directUrl])).toMatchObject({ options: { directUrl } })
    for (const text of ['', 'localhost:3000', 'http://localhost:3000']) {
      expect(faultOf(`--direct=${text}`)).toContain('--direct: expected a page')
    }
  })

  test('rejects an empty state folder', () => {
    expect(faultOf('--state=')).toBe('--state: expected a folder')
  })
})
