import { readdir, readFile } from 'node:fs/promises'

const MAIN = 'services/coordinator/src/main.ts'

/** The process id of the coordinator that this process started. */
export async function findCoordinator(): Promise<number> {
  const ids = (await readdir('/proc')).filter((name) => /^[0-9]+$/.test(name))
  for (const id of ids) {
    const [command, status] = await Promise.all(
      ['cmdline', 'status'].map((name) => readFile(`/proc/${id}/${name}`, 'utf8').catch(() => '')),
    )
    const isOurs = new RegExp(`^PPid:\\s+${process.pid}$`, 'm').test(status ?? '')
    if (isOurs && command?.includes(MAIN)) return Number(id)
  }
  throw new Error('no coordinator was started by this process')
}

/** Ports of the callers whose connections to a local port the system holds as established, on the side of the server. */
export async function listCallers(port: number): Promise<Set<number>> {
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')))
  const callers = new Set<number>()
  for (const line of tables.join('\n').split('\n')) {
    const [, local = '', remote = '', state] = line.trim().split(/\s+/)
    if (state === '01' && local.endsWith(`:${hex}`)) callers.add(Number.parseInt(remote.split(':')[1] ?? '', 16))
  }
  return callers
}
