import { readFile } from 'node:fs/promises'

/** Resident memory of a process in MiB, from /proc. Throws if it has ended. */
export async function readResidentMib(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]
  if (kibibytes === undefined) throw new Error(`failed to read the resident memory of process ${pid}`)
  return Number(kibibytes) / 1024
}
