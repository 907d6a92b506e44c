import { parseArguments } from '@countersign/service'

export type Options = {
  /** Deletes the local state first. */
  reset: boolean
  /** Instead of a PostgreSQL of its own. */
  databaseUrl: string | undefined
  quoteLatencyMs: number
  hasWeb: boolean
  /** The enclave insists on a log that three witnesses cosign. */
  hasLog: boolean
  /** Of apps that may call besides, and that sign-in may return to. */
  origins: readonly string[]
  /** Every line of every part is shown. */
  isVerbose: boolean
  /** An app at `web` may call, also one that is served by hand. */
  ports: { web: number; demo: number; coordinator: number; enclave: number; oidc: number; chain: number }
  /** Where the state lies; undefined: `.countersign` in the checkout. */
  stateDir: string | undefined
}

export type ParsedOptions = { kind: 'run'; options: Options } | { kind: 'help' } | { kind: 'fault'; fault: string }

export const USAGE = `usage: npm run dev -- [options]

Starts everything on this machine, with simulated silicon: identity provider, satellite, chain, key enclave, coordinator with its
database, IPFS node and worker, the web app, and a site to sign in to with the wallet. Ctrl-C stops it.
  --reset               deletes the local users, wallets, keys, receipts and chain first
  --origin URL          an app of yours that may call, and that sign-in may return to, such as http://localhost:3000; repeat for
                        more. On any other host than localhost browsers send no cookies along
  --verbose             shows every line of every part; without it, warnings and errors
  --no-web              without the web app and the site; an app that you serve at --web-port may still call
  --log                 with a log of every signature, which three witnesses cosign
  --database URL        another PostgreSQL than the one that it starts
  --quote-latency MS    how long a simulated quote takes (default 39, as real ones do)
  --web-port N          of the web app (default 5173)
  --demo-port N         of the site to sign in to (default 5174)
  --port N              of the coordinator (default 8080)
  --enclave-port N      of the key enclave (default 8090)
  --oidc-port N         of the identity provider (default 9090)
  --chain-port N        of the chain (default 8545)
  --state DIR           where the state lies (default .countersign)
  --help                says this

Example: npm run dev -- --origin http://localhost:3000
Exit codes: 0 stopped, 1 could not start or go on, 2 wrong arguments.`

const OPTIONS = {
  reset: { type: 'boolean', default: false },
  database: { type: 'string' },
  'quote-latency': { type: 'string' },
  'no-web': { type: 'boolean', default: false },
  log: { type: 'boolean', default: false },
  origin: { type: 'string', multiple: true },
  verbose: { type: 'boolean', default: false },
  'web-port': { type: 'string' },
  'demo-port': { type: 'string' },
  port: { type: 'string' },
  'enclave-port': { type: 'string' },
  'oidc-port': { type: 'string' },
  'chain-port': { type: 'string' },
  state: { type: 'string' },
} as const

class Fault extends Error {}

export function parseOptions(args: readonly string[]): ParsedOptions {
  const parsed = parseArguments(args, OPTIONS)
  if (parsed.kind !== 'run') return parsed
  const { values } = parsed
  try {
    const {
      reset,
      database: databaseUrl,
      state: stateDir,
      origin: origins = [],
      verbose: isVerbose,
      log: hasLog,
    } = values
    if (databaseUrl !== undefined && !isPostgresUrl(databaseUrl)) throw new Fault('--database: expected postgres://…')
    // The keys would be new and the wallets in the database old: no user could sign in again.
    if (reset && databaseUrl !== undefined) throw new Fault('--reset: clears local state only, not --database')
    if (stateDir === '') throw new Fault('--state: expected a folder')
    if (!origins.every(isOrigin)) {
      throw new Fault('--origin: expected scheme, host and port alone, such as http://localhost:3000')
    }
    const integer = (name: keyof typeof values, fallback: number, min: number, max: number) =>
      readInteger(`--${name}`, values[name] as string | undefined, { fallback, min, max })
    const ports = {
      web: integer('web-port', 5173, 1, 65_535),
      demo: integer('demo-port', 5174, 1, 65_535),
      coordinator: integer('port', 8080, 1, 65_535),
      enclave: integer('enclave-port', 8090, 1, 65_535),
      oidc: integer('oidc-port', 9090, 1, 65_535),
      chain: integer('chain-port', 8545, 1, 65_535),
    }
    if (new Set(Object.values(ports)).size < Object.keys(ports).length)
      throw new Fault('every service needs a port of its own')
    const quoteLatencyMs = integer('quote-latency', 39, 0, 60_000)
    const hasWeb = !values['no-web']
    return {
      kind: 'run',
      options: { reset, databaseUrl, quoteLatencyMs, hasWeb, hasLog, origins, isVerbose, ports, stateDir },
    }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { kind: 'fault', fault: error.message }
  }
}

function readInteger(
  name: string,
  text: string | undefined,
  { fallback, min, max }: { fallback: number; min: number; max: number },
): number {
  if (text === undefined) return fallback
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw new Fault(`${name}: expected a whole number from ${min} to ${max}`)
}

/** As a browser writes it in `Origin`, to the letter. */
function isOrigin(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).origin === text
}

function isPostgresUrl(text: string): boolean {
  return URL.canParse(text) && /^postgres(ql)?:$/.test(new URL(text).protocol)
}
