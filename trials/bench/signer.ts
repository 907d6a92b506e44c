import { APP_ORIGIN } from '@countersign/testing/launcher'
import { createAccounts, createTx, createUser, median, percentile, toDigest } from '@countersign/testing/stack'
import { type Answered, applyLoad, connectCaller, type Requests, toPost } from './load.ts'
import type { LoadedVault } from './vaults.ts'

export const QUOTE_MS = 39

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
  { url }: { url: string },
  { cookies, count, connections = 64 }: { cookies: readonly string[]; count: number; connections?: number },
): Promise<string[]> {
  const next = prepareSignings({ cookies, connections, count })
  const share = Math.ceil(count / connections)
  const slugs: string[] = []
  const lanes = Array.from({ length: Math.ceil(count / share) }, async (_, connection) => {
    const caller = await connectCaller(url)
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

/** Who asks whom for signatures: with their own wallets, or each with a vault. An echo answers at once, whatever it is asked. */
export type Load = {
  url: string
  cookies: readonly string[]
  vaults?: readonly LoadedVault[] | undefined
  isEcho?: boolean
}

export type Figures = { rate: number; p50: number; p99: number }

/** More than any machine answers in a second. */
const MAX_PER_SECOND = 4_000
/** Requests that each connection has beyond that: some are answered before others. */
const SPARE_EACH = 4

/** Four slices each, in an order in which whatever changes slowly on the machine changes for all alike. */
export async function measureInTurns<const Loads extends readonly Load[]>(
  loads: Loads,
  connections: number,
  sliceMs: number,
): Promise<{ [Index in keyof Loads]: Figures }> {
  const measured = loads.map((load) => ({ load, slices: [] as Answered[] }))
  const back = measured.toReversed()
  for (const { load, slices } of [...measured, ...back, ...back, ...measured])
    slices.push(await prepareLoad(load, connections, sliceMs)())
  return measured.map(({ slices }) => toFigures(slices)) as { [Index in keyof Loads]: Figures }
}

export const measure = async (load: Load, connections: number, sliceMs: number): Promise<Figures> =>
  toFigures([await prepareLoad(load, connections, sliceMs)()])

/** What it answers applies the load; the requests are made before. */
export function prepareLoad(load: Load, connections: number, sliceMs: number): () => Promise<Answered> {
  const { url, cookies, vaults, isEcho = false } = load
  // Nobody is answered sooner than a quote is made.
  const most = isEcho ? 0 : Math.min((MAX_PER_SECOND * sliceMs) / 1000, (connections * sliceMs) / QUOTE_MS)
  const count = Math.ceil(most) + SPARE_EACH * connections
  const next = prepareSignings({ cookies, vaults, connections, count, mayRepeat: isEcho })
  return () => applyLoad({ url, connections, sliceMs, next })
}

function toFigures(slices: readonly Answered[]): Figures {
  const latencies = slices.flatMap((slice) => slice.latencies)
  const rate = slices.reduce((sum, slice) => sum + slice.rate, 0) / slices.length
  return { rate, p50: median(latencies), p99: percentile(latencies, 0.99) }
}
