import { readCode } from '@countersign/service'
import { CoordinatorError } from '../errors.ts'

/** Node's codes for network errors. */
const NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
])
/**
 * PostgreSQL, appendix A: 08 connection exception, 25006 read-only (a server that became a standby), 28 invalid authorization, 3D000 no such
 * database, 53 insufficient resources, 57014 cancelled (by our timeout), 57P administrator shutdown, crash shutdown, cannot connect now, 58
 * system errors such as a full disk.
 */
const SQL_STATES = /^(?:08...|25006|28...|3D000|53...|57014|57P0[1-5]|58...)$/
/** PostgreSQL's code for a lock timeout. */
export const LOCK_NOT_AVAILABLE = '55P03'
/** PostgreSQL's code. Without a constraint name it means that no partition exists for a row. */
export const CHECK_VIOLATION = '23514'
/** The drivers' messages, without a code, for a lost or closed connection. */
const MESSAGES =
  /^(?:Connection terminated|Client (?:has encountered a connection error|was closed)|timeout exceeded when trying to connect|timeout expired|Query read timeout|Cannot use a pool after calling end|driver has already been destroyed|Postgres connection has been discarded)/

/** Converts failures of the database itself to `database_unavailable`. Returns other errors unchanged. */
export function toDatabaseError(error: unknown): unknown {
  return isUnavailable(error)
    ? new CoordinatorError('database_unavailable', 'the database is unavailable', { cause: error })
    : error
}

/** Wraps a database call to convert its failures. */
export function guard<Parameters extends readonly unknown[], Result>(
  run: (...parameters: Parameters) => Promise<Result>,
): (...parameters: Parameters) => Promise<Result> {
  return async (...parameters) => {
    try {
      return await run(...parameters)
    } catch (error) {
      throw toDatabaseError(error)
    }
  }
}

type Bound<Functions> = {
  [Name in keyof Functions]: Functions[Name] extends (deps: never, ...parameters: infer Parameters) => infer Result
    ? (...parameters: Parameters) => Result
    : never
}

/** Binds the first argument of database functions and guards them as above. */
export function bind<Deps, Functions extends Record<string, (deps: Deps, ...parameters: never[]) => Promise<unknown>>>(
  deps: Deps,
  functions: Functions,
): Bound<Functions> {
  const bound = Object.entries(functions).map(([name, run]) => [
    name,
    guard((...parameters: never[]) => run(deps, ...parameters)),
  ])
  return Object.fromEntries(bound) as Bound<Functions>
}

/** The code of a network or PostgreSQL error, or an empty string. */
export function toErrorCode(error: unknown): string {
  return readCode(error) ?? ''
}

/** The name of the violated constraint, or an empty string. */
export function toConstraint(error: unknown): string {
  return error instanceof Error && 'constraint' in error ? String(error.constraint ?? '') : ''
}

function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof CoordinatorError) return false
  if (error instanceof AggregateError && error.errors.some(isUnavailable)) return true
  const code = toErrorCode(error)
  return NETWORK_CODES.has(code) || SQL_STATES.test(code) || MESSAGES.test(error.message)
}
