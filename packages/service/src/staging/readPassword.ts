import { type Env, type Fault, readSecret } from '../readEnv.ts'
import type { Mode } from './readMode.ts'

const MIN_PASSWORD_LENGTH = 16

/** What guards a staging; undefined elsewhere, and after a fault. It comes from a file: a variable shows in lists of processes. */
export function readPassword(
  env: Env,
  { mode, readFile }: { mode: Mode; readFile(path: string): string },
  fault: Fault,
): string | undefined {
  const { STAGING_PASSWORD_FILE: path = '' } = env
  if (mode !== 'staging') {
    // Whoever sets it believes that a password guards the service.
    if (path !== '') fault('STAGING_PASSWORD_FILE: guards nothing here, since this is not staging')
    return undefined
  }
  if (path === '') return void fault('STAGING_PASSWORD_FILE: required in staging, where a password guards everything')
  const password = readSecret({ STAGING_PASSWORD_FILE: path }, 'STAGING_PASSWORD', readFile, fault)
  if (password !== undefined && password.length < MIN_PASSWORD_LENGTH) {
    return void fault(`STAGING_PASSWORD_FILE: the password is shorter than ${MIN_PASSWORD_LENGTH} characters`)
  }
  return password
}
