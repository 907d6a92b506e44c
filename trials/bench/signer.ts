import { APP_ORIGIN } from '@countersign/testing/launcher'
import { createAccounts, createTx, createUser, toDigest } from '@countersign/testing/stack'
import type { Requests } from './applyLoad.ts'
import { connectCaller, toPost } from './connectCaller.ts'
import type { LoadedVault } from './vaults.ts'

/** Session cookies of so many users, each signed in. */
export async function signInAll({ url }: { url: string }, users: number): Promise<string[]> {
  const cookies: string[] = []
  for (const { sub } of createAccounts(users)) {
    const user = createUser({ url })
    await user.signIn(sub)
    cookies.push(user.cookie)
  }
  return cookies
}

/**
 * Requests made before the clock runs: each for a transaction that was never signed before. Where an answer needs no new
 * transaction, as an echo's, they start again when they are used up.
 */
export function prepareSignings(parameters: {
  cookies: readonly string[]
  /** Of the same users, in their order. */
  vaults?: readonly LoadedVault[] | undefined
  connections: number
  count: number
  mayRepeat?: boolean
}): Requests {
  const { cookies, vaults, connections, count, mayRepeat = false } = parameters
  // Somewhere in so many that no two calls meet.
  let nextNonce = Math.floor(Math.random() * 2 ** 48)
  const queues = Array.from({ length: connections }, (_, connection) => {
    const user = connection % cookies.length
    return Array.from({ length: Math.ceil(count / connections) }, () =>
      toSigning(cookies[user] ?? '', nextNonce++, vaults?.[user]),
    )
  })
  const positions = queues.map(() => 0)
  return (connection) => {
    const queue = queues[connection] ?? []
    const position = positions[connection] ?? 0
    positions[connection] = position + 1
    const request = queue[mayRepeat ? position % queue.length : position]
    if (request === undefined) throw new Error('too few requests were prepared')
    return request
  }
}

/** Signs so many transactions, many at a time; gives their slugs. */
export async function signMany(
  { address }: { address: string },
  { cookies, count, connections = 64 }: { cookies: readonly string[]; count: number; connections?: number },
): Promise<string[]> {
  const next = prepareSignings({ cookies, connections, count })
  const share = Math.ceil(count / connections)
  const slugs: string[] = []
  const lanes = Array.from({ length: Math.ceil(count / share) }, async (_, connection) => {
    const caller = await connectCaller(address)
    try {
      for (let left = Math.min(share, count - connection * share); left > 0; left--) {
        const answer = await caller.call(next(connection))
        const slug = /"slug":"([^"]+)"/.exec(answer)?.[1]
        if (slug === undefined) throw new Error(`not signed: ${answer.slice(0, 400)}`)
        slugs.push(slug)
      }
    } finally {
      caller.close()
    }
  })
  await Promise.all(lanes)
  return slugs
}

function toSigning(cookie: string, nonce: number, vault: LoadedVault | undefined): Buffer {
  const txMetadata = createTx(nonce)
  const digest = toDigest(txMetadata)
  const use = vault && { wallet: vault.address, approvals: vault.approve(digest) }
  const headers = { origin: APP_ORIGIN, 'content-type': 'application/json', cookie }
  return toPost('/sign/digest', headers, JSON.stringify({ digest, txMetadata, ...use }))
}
