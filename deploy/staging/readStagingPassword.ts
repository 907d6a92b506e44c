import { readFileSync } from 'node:fs'
import { readMode, readPassword } from '@countersign/service'

/** The password of this process's staging. Throws where there is none, or this is no staging. */
export function readStagingPassword(): string {
  const faults: string[] = []
  const readFile = (path: string) => readFileSync(path, 'utf8')
  const password = readPassword(process.env, { mode: readMode(process.env), readFile }, (fault) => faults.push(fault))
  if (password === undefined) throw new Error(faults[0] ?? 'NODE_ENV: this program is for staging alone')
  return password
}
