import type { PolicyLog } from '@countersign/policy'
import { logList } from '@countersign/protocol'
import { read } from '@countersign/protocol/schema'
import { findNewestLog } from '@countersign/verify'

const TIMEOUT_MS = 10_000

/** The log that the service writes now, by the newest cosignatures of these witnesses. Undefined if a quorum of them cosigns none. */
export async function findBudgetOrigin(apiBaseUrl: string, witnesses: PolicyLog): Promise<string | undefined> {
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const fetchFrom = async (path: string) => {
    const response = await globalThis.fetch(`${apiBaseUrl.replace(/\/+$/, '')}${path}`, { signal, cache: 'no-store' })
    if (!response.ok) throw new Error(`${path} answered ${response.status}`)
    return response
  }
  const { logs } = read(logList, await (await fetchFrom('/log')).json())
  const cosigned = logs.filter(({ size }) => size > 0)
  const notes = cosigned.map(async ({ hash }) => (await fetchFrom(`/log/${hash}/checkpoint`)).text())
  return findNewestLog(await Promise.all(notes), witnesses)
}
