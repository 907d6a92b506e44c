import type { Hex } from '@countersign/protocol'

/** The queue of one wallet on one chain. */
export type SendLine = {
  /** Settles with the last task so far. */
  tail: Promise<unknown>
  /** What this page sent last. An RPC of many nodes may not count it yet when it is asked for the next nonce. */
  last?: { nonce: number; txHash: Hex }
}

/** One for the page: two clients with the same wallet take their nonces from one account. */
const lines = new Map<string, SendLine>()

/**
 * Runs one task at a time for each wallet and chain, in the order of the calls: between reading a nonce and the answer to the
 * broadcast no other transaction may read it. Across tabs by Web Locks; where there are none (a page that is not in a secure
 * context), only on this page.
 */
export function withSendLock<R>(
  { address, chainId }: { address: Hex; chainId: number },
  task: (line: SendLine) => Promise<R>,
): Promise<R> {
  const name = `countersign:send:${chainId}:${address.toLowerCase()}`
  const line = lines.get(name) ?? { tail: Promise.resolve() }
  lines.set(name, line)
  const result = line.tail.then(() => withWebLock(name, () => task(line)))
  line.tail = result.catch(() => {})
  return result
}

/** For a new chain: nothing has been sent on it. */
export function forgetSent(): void {
  for (const line of lines.values()) delete line.last
}

async function withWebLock<R>(name: string, task: () => Promise<R>): Promise<R> {
  const locks = globalThis.navigator?.locks
  if (locks === undefined) return task()
  let hasStarted = false
  try {
    return await locks.request(name, () => {
      hasStarted = true
      return task()
    })
  } catch (error) {
    // A sandboxed frame has the interface and may not use it. A task that ran is never run again.
    if (hasStarted) throw error
    return task()
  }
}
