/** Readers of single settings. What is wrong is told to `fault`, so that all faults are told at once. */
export type Env = Readonly<Record<string, string | undefined>>
export type Fault = (text: string) => void

/** Everything that is wrong with the configuration, at once. */
export class ConfigError extends Error {
  override name = 'ConfigError'
  readonly faults: readonly string[]
  constructor(faults: readonly string[]) {
    super(`the configuration has ${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}`)
    this.faults = faults
  }
}

export const LOOPBACK = ['127.0.0.1', '::1', 'localhost', '[::1]']

export function readBoolean(env: Env, name: string, fault: Fault): boolean {
  const value = env[name]
  if (value === undefined || value === '' || value === 'false') return false
  if (value !== 'true') fault(`${name}: expected true or false`)
  return true
}

export function readInteger(
  env: Env,
  name: string,
  { fallback, min, max }: { fallback: number; min: number; max: number },
  fault: Fault,
): number {
  const text = env[name]
  if (text === undefined || text === '') return fallback
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  fault(`${name}: expected a whole number from ${min} to ${max}`)
  return fallback
}

export function readList(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

export function readUrl(env: Env, name: string, fallback: string, fault: Fault): string {
  const text = (env[name] ?? fallback).replace(/\/+$/, '')
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) fault(`${name}: expected an http or https URL`)
  return text
}

export function isLoopbackUrl(text: string): boolean {
  return URL.canParse(text) && LOOPBACK.includes(new URL(text).hostname)
}

/** Undefined where no metrics are served. */
export function readMetricsPort(env: Env, fault: Fault): number | undefined {
  if (env.METRICS_PORT === undefined || env.METRICS_PORT === '') return undefined
  return readInteger(env, 'METRICS_PORT', { fallback: 0, min: 0, max: 65_535 }, fault)
}
