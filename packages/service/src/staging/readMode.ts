import type { Env } from '../readEnv.ts'

/**
 * How strict a service is about its settings. An image's launcher decides it, and nothing from outside of the image can: those for production
 * say `production`, those with simulated silicon `staging`. Whatever else is said, or nothing, is development.
 */
export type Mode = 'development' | 'staging' | 'production'

export function readMode(env: Env): Mode {
  const { NODE_ENV: name } = env
  return name === 'production' || name === 'staging' ? name : 'development'
}
