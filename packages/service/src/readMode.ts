import type { Env } from './readEnv.ts'

/**
 * How strictly a service checks its settings. An image's launcher always sets `production`. Unknown values of `NODE_ENV`, or
 * none, mean development.
 */
export type Mode = 'development' | 'staging' | 'production'

export function readMode(env: Env): Mode {
  const { NODE_ENV: name } = env
  return name === 'production' || name === 'staging' ? name : 'development'
}
