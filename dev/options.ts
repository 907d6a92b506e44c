import { parseArguments } from '@countersign/service'

export type Options = {
  /** Deletes the local state first. */
  reset: boolean
  /** A database to use instead of the stack's own PostgreSQL. */
  databaseUrl: string | undefined
  quoteLatencyMs: number
  hasWeb: boolean
  /** The enclave requires a log that three witnesses cosign. */
  hasLog: boolean
  /** Publishes checkpoints of the log instead of one event per signature. Requires the log. */
  hasCheckpoints: boolean
  /** Origins of other apps that may call, and that sign-in may return to. */
  origins: readonly string[]
  /** The only page that users can sign in to: it does so at the identity provider itself, which returns to this URL. */
  directUrl: string | undefined
  /** Show every line of every part. */
  isVerbose: boolean
  /** An app at `web` may call, also if another program serves it. */
  ports: { web: number; demo: number; coordinator: number; enclave: number; oidc: number; chain: number }
  /** The folder of the state; undefined: `.countersign` in the checkout. */
  stateDir: string | undefined
}

export type ParsedOptions = { kind: 'run'; options: Options } | { kind: 'help' } | { kind: 'fault'; fault: string }

export const USAGE = `usage: npm run dev -- [options]

Starts the whole service on this machine, with simulated hardware: identity provider, entropy source, chain, key enclave, coordinator
with its database, IPFS node and worker, the web app, and a demo site to sign in to with the wallet. Press Ctrl-C to stop.
  --reset               delete the local users, wallets, keys, receipts and chain first
  --origin URL          another app that may call and that sign-in may return to, such as http://localhost:3000. Can be repeated.
                        Browsers send cookies only to apps on localhost
  --direct URL          sign in only from the app at this URL, which does so at the identity provider itself, with keys in the browser
  --verbose             show all log lines, not only warnings and errors
  --no-web              leave out the web app and the demo site. Your own app at --web-port may still call
  --log                 add a log of every signature, which three witnesses cosign
  --checkpoints         with --log: publish checkpoints of the log on the chain, instead of one event per signature
  --database URL        use this PostgreSQL instead of starting one
  --quote-latency MS    duration of a simulated quote (default 39, like a real one)
  --web-port N          web app (default 5173)
  --demo-port N         demo site (default 5174)
  --port N              coordinator (default 8080)
  --enclave-port N      key enclave (default 8090)
  --oidc-port N         identity provider (default 9090)
  --chain-port N        chain (default 8545)
  --state DIR           state folder (default .countersign)
  --help                print this text

Example: npm run dev -- --origin http://localhost:3000
Exit codes: 0 stopped, 1 a part failed, 2 wrong arguments.`

const OPTIONS = {
  reset: { type: 'boolean', default: false },
  database: { type: 'string' },
  'quote-latency': { type: 'string' },
  'no-web': { type: 'boolean', default: false },
  log: { type: 'boolean', default: false },
  checkpoints: { type: 'boolean', default: false },
  origin: { type: 'string', multiple: true },
  direct: { type: 'string' },
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
      direct: directUrl,
      verbose: isVerbose,
      log: hasLog,
      checkpoints: hasCheckpoints,
    } = values
    if (databaseUrl !== undefined && !isPostgresUrl(databaseUrl)) throw new Fault('--database: expected postgres://…')
    // The keys would be new and the wallets in the database old: no user could sign in again.
    if (reset && databaseUrl !== undefined)
      throw new Fault('--reset: deletes only local state, not the database of --database')
    if (hasCheckpoints && !hasLog) throw new Fault('--checkpoints: requires --log')
    if (stateDir === '') throw new Fault('--state: expected a folder')
    if (!origins.every(isOrigin)) {
      throw new Fault('--origin: expected only scheme, host and port, such as http://localhost:3000')
    }
    if (directUrl !== undefined && !isPage(directUrl)) {
      throw new Fault('--direct: expected a page, such as http://localhost:3000/')
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
      throw new Fault('each service needs a different port')
    const quoteLatencyMs = integer('quote-latency', 39, 0, 60_000)
    const hasWeb = !values['no-web']
    return {
      kind: 'run',
      options: {
        reset,
        databaseUrl,
        quoteLatencyMs,
        hasWeb,
        hasLog,
        hasCheckpoints,
        origins,
        directUrl,
        isVerbose,
        ports,
        stateDir,
      },
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

/** Exactly as a browser writes it in `Origin`. */
function isOrigin(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).origin === text
}

/** Exactly as the provider compares it. */
function isPage(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).href === text
}

function isPostgresUrl(text: string): boolean {
  return URL.canParse(text) && /^postgres(ql)?:$/.test(new URL(text).protocol)
}
