import type { TestUser } from '@countersign/testing/stack'
import type { Member } from '../member.ts'
import { startSteadyLoad } from './steadyLoad.ts'

export type Failover = {
  member: string
  fault: 'killed' | 'frozen' | 'stopped'
  /** Requests that were under way at the moment of the fault, or sent after it. */
  count: number
  failures: string[]
  /** Of requests that were sent after it. */
  lateFailures: string[]
  /** How long the slowest of them waited, from the fault or from when it was sent. */
  longestMs: number
  /** Of all signatures that were given before and after it. */
  slugs: readonly string[]
}

const BEFORE_MS = 1_500
const AFTER_MS = 3_000

/** Hits one process under a steady load, lets the load go on for a while, and brings the process back. */
export async function measureFailover(parameters: {
  member: Member
  fault: Failover['fault']
  user: TestUser
  rate: number
}): Promise<Failover> {
  const { member, fault, user, rate } = parameters
  const load = startSteadyLoad({ user, rate })
  const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
  await wait(BEFORE_MS)
  const moment = performance.now()
  if (fault === 'frozen') member.freeze()
  else void member.kill(fault === 'killed' ? 'SIGKILL' : 'SIGTERM')
  await wait(AFTER_MS)
  await load.stop()
  const { count, failures, lateFailures, longestMs } = load.since(moment)
  if (fault === 'frozen') member.wake()
  else {
    await member.kill('SIGKILL')
    await member.start()
  }
  return { member: member.name, fault, count, failures, lateFailures, longestMs, slugs: load.slugs }
}
