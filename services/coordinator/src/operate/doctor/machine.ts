import { constants } from 'node:fs'
import { access, stat, statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import packageJson from '../../../package.json' with { type: 'json' }
import { type Check, type Context, type Finding, fault, ok, type Subject, skipped, warning } from './check.ts'
import { findCode } from './reasons.ts'

const GIB = 2 ** 30
const LITTLE = GIB
const TOO_LITTLE = GIB / 8

/** What this machine has for the process. */
export function createMachineChecks({ subject }: Context): Check[] {
  return [
    { name: 'node', run: async () => checkNode(process.versions.node) },
    { name: 'data-directory', settings: /^(DATA_DIR|IPFS_PINNER)$/, run: () => checkDataDir(subject) },
    { name: 'disk', settings: /^(DATA_DIR|IPFS_PINNER)$/, run: () => checkDisk(subject) },
  ]
}

export function checkNode(version: string): Finding {
  const [, least = '0'] = /^>=(\d+)/.exec(packageJson.engines.node) ?? []
  if (Number(version.split('.')[0]) >= Number(least)) return ok(`v${version}`)
  return fault(`v${version} is too old`, `Use Node ${least} or later; npm run brings its own.`)
}

/** Only the embedded IPFS node stores anything there. */
const isUsed = ({ pipeline }: Subject) => pipeline?.pinner.kind === 'helia'
const notUsed = () => skipped('nothing is stored there: the IPFS node is elsewhere')

async function checkDataDir(subject: Subject): Promise<Finding> {
  if (!isUsed(subject)) return notUsed()
  const folder = resolve(subject.dataDir)
  const { path, isThere } = await findExisting(folder)
  const about = `DATA_DIR ${folder}`
  if (!(await stat(path)).isDirectory()) {
    return fault(`${about}: ${path} is a file`, 'Name a folder in DATA_DIR.')
  }
  try {
    await access(path, constants.W_OK | constants.X_OK)
  } catch (error) {
    const reason = findCode(error) === 'EROFS' ? 'is on a disk that is read-only' : 'cannot be written to'
    return fault(
      `${about} ${reason}`,
      `Name another folder in DATA_DIR, or give this one to user ${process.getuid?.()}.`,
    )
  }
  return ok(isThere ? `${folder}: IPFS blocks` : `${folder} is made at the first start`)
}

async function checkDisk(subject: Subject): Promise<Finding> {
  if (!isUsed(subject)) return notUsed()
  const { path } = await findExisting(resolve(subject.dataDir))
  const { bavail, bsize } = await statfs(path)
  return judgeSpace(bavail * bsize)
}

export function judgeSpace(bytes: number): Finding {
  const text = `${(bytes / GIB).toFixed(1)} GiB are free`
  const mend = 'Make room on the disk of DATA_DIR, or name a folder of another in it.'
  if (bytes < TOO_LITTLE) return fault(`only ${Math.floor(bytes / 2 ** 20)} MiB are free`, mend)
  return bytes < LITTLE ? warning(`only ${text}`, mend) : ok(text)
}

/** The folder, or the nearest above it that is there. */
async function findExisting(folder: string): Promise<{ path: string; isThere: boolean }> {
  for (let path = folder; ; path = dirname(path)) {
    const found = await stat(path).catch(() => undefined)
    if (found !== undefined || path === dirname(path)) return { path, isThere: path === folder }
  }
}
