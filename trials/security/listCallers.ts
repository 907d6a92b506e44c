import { readFile } from 'node:fs/promises'

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
