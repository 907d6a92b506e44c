import { countEdits } from './countEdits.ts'

/** Settings by name, as `process.env` has them. */
export type Env = Readonly<Record<string, string | undefined>>

/** `setting` is one name, or several separated by `, `. The texts never contain secrets. */
export type SettingFault = { setting: string; problem: string; fix: string }

/** Collects a fault, so that the process can report all faults at once. */
export type Fault = (setting: string, problem: string, fix?: string) => void

/** Faults without `fix` point to `.env.example`. */
export function collectFaults(): { faults: SettingFault[]; fault: Fault } {
  const faults: SettingFault[] = []
  return {
    faults,
    fault(setting, problem, fix = `Set ${setting} as .env.example explains.`) {
      faults.push({ setting, problem, fix })
    },
  }
}

export function describeFault({ setting, problem }: SettingFault): string {
  return `${setting}: ${problem}`
}

export const PRODUCTION_FIX = 'See docs/run/production.md for what production needs.'

/** For a file that is missing, empty or not readable. */
export function fileFix(setting: string): string {
  return `Put the file that ${setting} names where user ${process.getuid?.() ?? 'of this process'} can read it.`
}

/** All faults of the configuration. */
export class ConfigError extends Error {
  override name = 'ConfigError'
  readonly faults: readonly SettingFault[]
  constructor(faults: readonly SettingFault[]) {
    super(`the configuration has ${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}`)
    this.faults = faults
  }
}

/** `true` or `false`; false if unset. */
export function readBoolean(env: Env, name: string, fault: Fault): boolean {
  const value = env[name]
  if (value === undefined || value === '' || value === 'false') return false
  if (value !== 'true') fault(name, 'expected true or false')
  return true
}

export type IntegerBounds<Fallback> = { fallback: Fallback; min: number; max: number }

/** A whole number in decimal digits; the fallback if unset. */
export function readInteger<Fallback extends number | undefined>(
  env: Env,
  name: string,
  { fallback, min, max }: IntegerBounds<Fallback>,
  fault: Fault,
): number | Fallback {
  const text = env[name]
  if (text === undefined || text === '') return fallback
  const value = text.length <= String(max).length && /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  fault(name, `expected a whole number from ${min} to ${max}`)
  return fallback
}

/**
 * Reads a secret from `NAME`, or from the file `NAME_FILE` without surrounding white space. Empty if unset, undefined after a fault.
 * Faults never contain the secret.
 */
export function readSecret(
  env: Env,
  name: string,
  readFile: (path: string) => string,
  fault: Fault,
): string | undefined {
  const value = env[name] ?? ''
  const path = env[`${name}_FILE`] ?? ''
  if (path === '') return value
  if (value !== '') return void fault(`${name}, ${name}_FILE`, 'both are set, expected only one')
  let text: string
  try {
    text = readFile(path).trim()
  } catch {
    return void fault(`${name}_FILE`, 'cannot be read', fileFix(`${name}_FILE`))
  }
  return text === '' ? void fault(`${name}_FILE`, 'is empty', fileFix(`${name}_FILE`)) : text
}

/**
 * Finds variables that could load unmeasured code or change trusted certificates: those read by the dynamic loader, Node, OpenSSL, npm and
 * packages with native code. An image's launcher drops them before any code runs; this check covers processes started without it.
 */
export function findUnmeasured(env: Env): string[] {
  return Object.keys(env).filter((name) => UNMEASURED.test(name) && env[name] !== undefined)
}

const UNMEASURED =
  /^(LD_.*|GLIBC_TUNABLES|SSL_CERT_.*|OPENSSL_.*|NODE_(?!ENV$|EXTRA_CA_CERTS$).*|npm_config_(arch|platform)|SECP256K1_PREBUILD|PREBUILDS_ONLY|LIBC|ARM_VERSION)$/

/** Comma-separated items, trimmed, without empty ones. */
export function readList(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

/** An http or https URL without a slash at the end; the fallback if unset. */
export function readUrl(env: Env, name: string, fallback: string, fault: Fault): string {
  const text = (env[name] || fallback).replace(/\/+$/, '')
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) fault(name, 'expected an http or https URL')
  return text
}

/**
 * Reports each variable that resembles one of `names`: a misspelled setting would be ignored silently, and its default used.
 * Ignores other variables. Skips short names, because too many words resemble them.
 *
 * @example
 * refuseMisspelt(process.env, ['DATABASE_URL'], fault) // DATABASE_URI: unknown; did you mean DATABASE_URL?
 */
export function refuseMisspelt(env: Env, names: readonly string[], fault: Fault): void {
  const long = names.filter((known) => known.length >= MIN_LENGTH)
  for (const name of Object.keys(env)) {
    if (env[name] === undefined || names.includes(name)) continue
    const spelt = name.toUpperCase().replaceAll('-', '_')
    const meant = long.find((known) => isNear(spelt, known)) ?? long.find((known) => isPartly(spelt, known))
    if (meant !== undefined) fault(name, `unknown; did you mean ${meant}?`, `Rename it to ${meant}, or remove it.`)
  }
}

const MIN_LENGTH = 7

/** One inserted, deleted, changed or swapped letter; two in long names. */
function isNear(text: string, known: string): boolean {
  const most = known.length < 12 ? 1 : 2
  return Math.abs(text.length - known.length) <= most && countEdits(text, known) <= most
}

/** The first two or more words of a name, possibly plural, or `_FILE` after a name that has no file. */
function isPartly(text: string, known: string): boolean {
  const isStart = (words: string) => words.includes('_') && known.startsWith(`${words}_`)
  return isStart(text) || isStart(text.replace(/S$/, '')) || text === `${known}_FILE`
}
