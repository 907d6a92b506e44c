import { readFile } from 'node:fs/promises'

/** How much memory a process has, in mebibytes, as Linux tells it. Throws where there is no such process. */
export async function readResidentMib(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]
  if (kibibytes === undefined) throw new Error('the resident size cannot be read')
  return Number(kibibytes) / 1024
}
