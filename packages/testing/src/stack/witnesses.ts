import { execFile } from 'node:child_process'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { COMPILE_CACHE, mains, toPath } from './paths.ts'
import { type LogFields, type Service, startService } from './startService.ts'

/** Folder of a witness, and the verifier key of its Ed25519 cosignatures. */
export type WitnessFolder = { name: string; vkey: string; folder: string }

const NEW_KEY = toPath('services/witness/src/newKey.ts')
const VKEY_FILE = 'vkey'

/** Returns this many witnesses in a folder, named `w1` and so on. Creates missing ones with the operator's command. */
export function createWitnessFolders(parent: string, count: number): Promise<WitnessFolder[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => createWitnessFolder(parent, `w${index + 1}`)))
}

async function createWitnessFolder(parent: string, name: string): Promise<WitnessFolder> {
  const folder = join(parent, name)
  const known = await readFile(join(folder, VKEY_FILE), 'utf8').catch(() => undefined)
  if (known !== undefined) return { name, vkey: known, folder }
  const draft = `${folder}.new`
  await mkdir(parent, { recursive: true, mode: 0o700 })
  await rm(draft, { recursive: true, force: true })
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['-C', 'source', NEW_KEY, '--name', `witness.localhost/${name}`, '--dir', draft],
    { env: { NODE_COMPILE_CACHE: COMPILE_CACHE } },
  )
  const [vkey = ''] = stdout.split('\n')
  await writeFile(join(draft, VKEY_FILE), vkey)
  // Publishes the witness and its verifier key together.
  await rename(draft, folder)
  return { name, vkey, folder }
}

/** Verifier keys of the logs that an enclave may write, from its "started" log line. */
export function readLogKeys({ logKeys }: LogFields): string[] {
  if (typeof logKeys !== 'string') throw new Error('the enclave reported no log keys')
  return logKeys.split(' ')
}

/** Writes the list of logs that witnesses cosign, for `startWitness`. */
export async function writeLogList(path: string, vkeys: readonly string[]): Promise<void> {
  await writeFile(path, ['logs/v0', ...vkeys.map((vkey) => `vkey ${vkey}`), ''].join('\n'))
}

export function startWitness(parameters: {
  folder: string
  logsFile: string
  /** Default: a free one. */
  port?: number
  onLine?(line: string): void
}): Service {
  const { folder, logsFile, port = 0, onLine } = parameters
  return startService({
    name: 'witness',
    main: mains.witness,
    env: { PORT: String(port), WITNESS_DIR: folder, WITNESS_LOGS_FILE: logsFile },
    ...(onLine === undefined ? {} : { onLine }),
  })
}

/** A witness process that can be killed and restarted at the same address. */
export type RunningWitness = Awaited<ReturnType<typeof runWitness>>

/** Starts a witness and keeps its address for restarts. */
export async function runWitness(
  witness: WitnessFolder,
  parameters: { logsFile: string; onLine?(line: string): void },
) {
  let service = startWitness({ ...witness, ...parameters })
  const url = String((await service.started).address)
  return {
    ...witness,
    url,
    pid: () => (service.hasEnded() ? undefined : service.pid),
    kill: (signal: NodeJS.Signals): Promise<unknown> => service.kill(signal),
    async start() {
      service = startWitness({ ...witness, ...parameters, port: Number(new URL(url).port) })
      await service.started
    },
    freeze: () => service.freeze(),
    wake: () => service.wake(),
  }
}
