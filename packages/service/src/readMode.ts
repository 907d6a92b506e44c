import type { Env } from './readEnv.ts'

/**
 * How strict a service is about its settings. In an image the launcher sets `production`, and nothing outside of the image can change it. Any other
 * value of `NODE_ENV`, or none, is development.
 */
export type Mode = 'development' | 'staging' | 'production'

export function readMode(env: Env): Mode {
  const { NODE_ENV: name } = env
  return name === 'production' || name === 'staging' ? name : 'development'
}
