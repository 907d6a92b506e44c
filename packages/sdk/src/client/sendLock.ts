import type { Hex } from '@countersign/protocol'

/**
 * The last task of each name on this page. It has to be one for the page: two clients with the same wallet take their nonces
 * from one account.
 */
const tails = new Map<string, Promise<unknown>>()

/**
 * Runs one task at a time for each wallet and chain, in the order of the calls: between reading a nonce and the answer to the
 * broadcast no other transaction may read it. Across tabs by Web Locks; where there are none (a page that is not in a secure
 * context), on this page alone.
 */
export function withSendLock<R>(key: { address: Hex; chainId: number }, task: () => Promise<R>): Promise<R> {
  const name = `countersign:send:${key.chainId}:${key.address.toLowerCase()}`
  const previous = tails.get(name) ?? Promise.resolve()
  const result = previous.then(() => withWebLock(name, task))
  const tail = result.then(ignore, ignore).then(() => {
    if (tails.get(name) === tail) tails.delete(name)
  })
  tails.set(name, tail)
  return result
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

function ignore() {}
