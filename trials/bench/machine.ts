import { execFile } from 'node:child_process'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { promisify } from 'node:util'

/** What figures depend on. */
export type Machine = {
  node: string
  arch: string
  cores: number
  processor: string
  memoryGiB: number
  date: string
  /** Undefined outside of a checkout. */
  commit: string | undefined
  /** Whether the checkout differs from that commit. */
  isChanged: boolean | undefined
}

export async function readMachine(now: Date): Promise<Machine> {
  const status = await git('status', '--porcelain')
  return {
    node: process.version,
    arch: process.arch,
    cores: availableParallelism(),
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    date: now.toISOString(),
    commit: await git('rev-parse', 'HEAD'),
    isChanged: status === undefined ? undefined : status !== '',
  }
}

async function git(...parameters: string[]): Promise<string | undefined> {
  try {
    return (await promisify(execFile)('git', parameters)).stdout.trim()
  } catch {
    return undefined
  }
}
