import type { Hex } from '@countersign/protocol'

/** The queue of one wallet on one chain. */
export type SendLine = {
  /** Resolves when the last task has ended. */
  tail: Promise<unknown>
  /** This page's last transaction. An RPC with many nodes may not count it yet. */
  last?: { nonce: number; txHash: Hex }
}

/** Shared by all clients of the page, because two clients with one wallet use the same nonces. */
const lines = new Map<string, SendLine>()

/**
 * Runs one task at a time for each wallet and chain, in the order of the calls, so that two transactions never use the same nonce.
 * Works across tabs with Web Locks, and without them (outside a secure context) only on this page.
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

/** For a new test chain, on which nothing was sent. */
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
    // A sandboxed frame has Web Locks but may not use them. Never run a task twice.
    if (hasStarted) throw error
    return task()
  }
}
