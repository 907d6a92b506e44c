import { availableParallelism, cpus, totalmem } from 'node:os'
import { readCommit } from './readCommit.ts'

/** What figures depend on. */
export type Machine = {
  node: string
  arch: string
  cores: number
  processor: string
  memoryGiB: number
  date: string
  commit: string
}

export async function readMachine(now: Date): Promise<Machine> {
  return {
    node: process.version,
    arch: process.arch,
    cores: availableParallelism(),
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    date: now.toISOString(),
    commit: await readCommit('.'),
  }
}

/** In a line. */
export function describeMachine({ date, arch, cores, processor, memoryGiB, node, commit }: Machine): string {
  return `${date.slice(0, 10)}, ${arch}, ${cores} cores (${processor}), ${memoryGiB} GiB, Node ${node}, ${commit}`
}
