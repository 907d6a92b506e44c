import { readCode } from '@countersign/service'
import { CoordinatorError } from '../errors.ts'

/** Of the network, as Node names them. */
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
 * PostgreSQL's appendix A: 08 connection exception, 25006 read only (a server that became a standby), 28 invalid authorization, 3D000
 * no such database, 53 insufficient resources, 57014 cancelled (by our own time limit), 57P administrator shutdown, crash shutdown,
 * cannot connect now, 58 failures outside of it, as of its disk.
 */
const SQL_STATES = /^(?:08...|25006|28...|3D000|53...|57014|57P0[1-5]|58...)$/
/** PostgreSQL's, of a statement that waited for a lock as long as it may. */
export const LOCK_NOT_AVAILABLE = '55P03'
/** PostgreSQL's. If the error names no constraint, there is no partition for a row. */
export const CHECK_VIOLATION = '23514'
/** What the drivers say without a code when a connection is gone, or was closed by us. */
const MESSAGES =
  /^(?:Connection terminated|Client (?:has encountered a connection error|was closed)|timeout exceeded when trying to connect|timeout expired|Query read timeout|Cannot use a pool after calling end|driver has already been destroyed|Postgres connection has been discarded)/

/** Failures of the database itself become `database_unavailable`; every other error stays what it is. */
export function toDatabaseError(error: unknown): unknown {
  return isUnavailable(error)
    ? new CoordinatorError('database_unavailable', 'the database is unavailable', { cause: error })
    : error
}

/** A call of the database whose failures are converted as above. */
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

/** Functions of the database with their first argument given, guarded as above. */
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

/** The code of the network or of PostgreSQL; empty where there is none. */
export function toErrorCode(error: unknown): string {
  return readCode(error) ?? ''
}

/** The rule of the database that was broken; empty where there is none. */
export function toConstraint(error: unknown): string {
  return error instanceof Error && 'constraint' in error ? String(error.constraint ?? '') : ''
}

function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof CoordinatorError) return false
  if (error instanceof AggregateError && error.errors.some(isUnavailable)) return true
  const code = toErrorCode(error)
  return NETWORK_CODES.has(code) || SQL_STATES.test(code) || MESSAGES.test(error.message)
}
