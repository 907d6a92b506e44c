import { join } from 'node:path'
import {
  createWitnessFolders,
  describeEnd,
  type EnclaveLogSettings,
  type LogFields,
  readLogKeys,
  type ServiceEnd,
  startWitness,
  type WitnessFolder,
  writeLogList,
} from '@countersign/testing/launcher'
import { WITNESSES } from './state.ts'

/** The log, and a spare log that the enclave uses if the database is older than the witnesses' view of the first. */
const ORIGINS = ['countersign.localhost/log-1', 'countersign.localhost/log-2']
const COUNT = 3
const OPEN_MS = 60_000

/** A log with its witnesses, before they start. */
export type DevLog = { settings: EnclaveLogSettings; folders: readonly WitnessFolder[]; folder: string }

/** Reads the witnesses from the state. The first start creates them. */
export async function prepareLog(stateDir: string): Promise<DevLog> {
  const folder = join(stateDir, WITNESSES)
  const folders = await createWitnessFolders(folder, COUNT)
  return { settings: { origins: ORIGINS, witnesses: folders.map(({ vkey }) => vkey) }, folders, folder }
}

type Witnesses = { routes: readonly { vkey: string; url: string }[]; stop(): Promise<void> }

/**
 * Starts the witnesses, which know the logs by the keys that the enclave reported. Calls `onStarting` with the function that stops them
 * before they serve. Returns undefined if one fails to start.
 */
export async function startWitnesses(
  { folder, folders }: DevLog,
  parameters: {
    /** The log line with which the enclave reported that it serves. */
    enclave: LogFields
    onLine(line: string): void
    onStarting(part: Pick<Witnesses, 'stop'>): void
    onEnd(text: string): void
  },
): Promise<Witnesses | undefined> {
  const logsFile = join(folder, 'logs')
  await writeLogList(logsFile, readLogKeys(parameters.enclave))
  const services = folders.map((each) => startWitness({ ...each, logsFile, onLine: parameters.onLine }))
  const stop = async () => void (await Promise.all(services.map((service) => service.stop())))
  parameters.onStarting({ stop })
  for (const [index, { ended }] of services.entries()) {
    const tell = (end: ServiceEnd) => parameters.onEnd(describeEnd(`witness ${folders[index]?.name}`, end))
    void ended.then(tell)
  }
  // The exit of a witness is reported above.
  const fields = await Promise.all(services.map(({ started }) => started)).catch(() => undefined)
  const routes = folders.map(({ vkey }, index) => ({ vkey, url: String(fields?.[index]?.address) }))
  return fields && { routes, stop }
}

/** Resolves when the first entry is cosigned and the service can sign. Throws with the reason if that takes too long. */
export async function untilOpen(publicUrl: string, isStopping: () => boolean): Promise<void> {
  const until = performance.now() + OPEN_MS
  while (!isStopping()) {
    const answer = await fetch(`${publicUrl}/health/ready`)
    if (answer.ok) return void (await answer.body?.cancel())
    const text = await answer.text()
    if (performance.now() > until) throw new Error(`The log was not opened: ${text}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
