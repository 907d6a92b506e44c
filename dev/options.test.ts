import { describe, expect, test } from 'vitest'
import { parseOptions, USAGE } from './options.ts'

const faultOf = (...args: string[]) => {
  const parsed = parseOptions(args)
  return parsed.kind === 'fault' ? parsed.fault : parsed.kind
}

describe('the options of npm run dev', () => {
  test('without any, everything has its default', () => {
    expect(parseOptions([])).toEqual({
      kind: 'run',
      options: {
        reset: false,
        databaseUrl: undefined,
        quoteLatencyMs: 39,
        hasWeb: true,
        hasLog: false,
        origins: [],
        isVerbose: false,
        ports: { web: 5173, demo: 5174, coordinator: 8080, enclave: 8090, oidc: 9090, chain: 8545 },
        stateDir: undefined,
      },
    })
  })

  test('each is read', () => {
    const args =
      '--database postgres://localhost/dev --quote-latency 0 --no-web --web-port 4 --demo-port 5 --port 1 --enclave-port 2 --oidc-port 65535 --chain-port 3 --verbose --log'
    expect(parseOptions([...args.split(' '), '--state', '/tmp/state'])).toEqual({
      kind: 'run',
      options: {
        reset: false,
        databaseUrl: 'postgres://localhost/dev',
        quoteLatencyMs: 0,
        hasWeb: false,
        hasLog: true,
        origins: [],
        isVerbose: true,
        ports: { web: 4, demo: 5, coordinator: 1, enclave: 2, oidc: 65_535, chain: 3 },
        stateDir: '/tmp/state',
      },
    })
    expect(parseOptions(['--reset'])).toMatchObject({ options: { reset: true } })
  })

  test('--help wins over everything that is well formed', () => {
    expect(parseOptions(['--help'])).toEqual({ kind: 'help' })
    expect(parseOptions(['-h', '--port', 'x'])).toEqual({ kind: 'help' })
  })

  test('what is unknown, or lacks its value, is named', () => {
    expect(faultOf('--rest')).toContain("'--rest'")
    expect(faultOf('--port')).toContain('--port')
    expect(faultOf('--reset=yes')).toContain('--reset')
  })

  test.each(['', '0', '65536', '1e3'])('%j is no port', (text) => {
    for (const name of ['--port', '--web-port', '--demo-port', '--enclave-port', '--oidc-port', '--chain-port']) {
      expect(faultOf(`${name}=${text}`)).toBe(`${name}: expected a whole number from 1 to 65535`)
    }
  })

  test.each(['', '-1', '60001', 'fast'])('%j is no latency', (text) => {
    expect(faultOf(`--quote-latency=${text}`)).toBe('--quote-latency: expected a whole number from 0 to 60000')
  })

  test('two services cannot share a port', () => {
    expect(faultOf('--port', '8090')).toBe('every service needs a port of its own')
  })

  test.each(['', 'localhost', 'mysql://localhost/dev'])('%j is no PostgreSQL', (text) => {
    expect(faultOf(`--database=${text}`)).toBe('--database: expected postgres://…')
  })

  test('keys are not deleted beside a database that keeps their wallets', () => {
    expect(faultOf('--reset', '--database', 'postgres://localhost/dev')).toContain('--reset')
  })

  test('the usage names every option', () => {
    const names = [...USAGE.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, name]) => name ?? '')
    expect(names).toContain('--no-web')
    // Known, whatever else is wrong with it.
    for (const name of names) expect(faultOf(name)).not.toContain('Unknown option')
    expect(names).toHaveLength(15)
  })

  test('origins are as browsers write them, as many as there are', () => {
    const origins = ['http://localhost:3000', 'https://app.example']
    expect(parseOptions(origins.flatMap((origin) => ['--origin', origin]))).toMatchObject({ options: { origins } })
  })

  test.each(['', 'localhost:3000', 'http://localhost:3000/', 'http://localhost:80', '*', 'http://user@localhost'])(
    '%j is no origin',
    (text) => {
      expect(faultOf('--origin', 'http://localhost:3000', `--origin=${text}`)).toContain('--origin: expected scheme')
    },
  )

  test('the state needs a folder', () => {
    expect(faultOf('--state=')).toBe('--state: expected a folder')
  })
})
