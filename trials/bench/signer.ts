import { hashUnsignedTransaction, toHex } from '@countersign/protocol'
import { createTestBrowser } from '@countersign/testing'
import type { Requests } from './applyLoad.ts'
import { connectCaller, toPost } from './connectCaller.ts'
import { ORIGIN, type Stack, toAccount } from './startStack.ts'

/** Cookies of so many users, each signed in. */
export async function signInAll({ url }: Pick<Stack, 'url'>, users: number): Promise<string[]> {
  const cookies: string[] = []
  for (let index = 0; index < users; index++) cookies.push(await signIn(url, toAccount(index).sub))
  return cookies
}

async function signIn(api: string, subject: string): Promise<string> {
  const browser = createTestBrowser()
  const { url } = await browser.navigate(`${api}/auth/google`)
  await browser.navigateUntil(new URL(`?as=${subject}`, url), ORIGIN)
  const session = [...browser.cookies('localhost')].find(
    ([name]) => name.includes('session') && name.includes('countersign'),
  )
  if (session === undefined) throw new Error('no session')
  return session.join('=')
}

let nextNonce = 0

/**
 * Requests made before the clock runs: each for a transaction that was never signed before. Where an answer needs no new
 * transaction, as an echo's, they start anew when they are used up.
 */
export function prepareSignings(parameters: {
  cookies: readonly string[]
  connections: number
  count: number
  mayRepeat?: boolean
}): Requests {
  const { cookies, connections, count, mayRepeat = false } = parameters
  const queues = Array.from({ length: connections }, (_, connection) =>
    Array.from({ length: Math.ceil(count / connections) }, () =>
      toSigning(cookies[connection % cookies.length] ?? '', nextNonce++),
    ),
  )
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

/** Signs so many transactions, many at a time; answers their slugs. */
export async function signMany(
  { address }: Pick<Stack, 'address'>,
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

function toSigning(cookie: string, nonce: number): Buffer {
  const amounts = { value: '1', gas: '21000', maxFeePerGas: '2', maxPriorityFeePerGas: '1' }
  const txMetadata = { chainId: 1, nonce, to: `0x${'11'.repeat(20)}`, data: '0x', ...amounts } as const
  const digest = `0x${toHex(hashUnsignedTransaction(txMetadata))}`
  const headers = { origin: ORIGIN, 'content-type': 'application/json', cookie }
  return toPost('/sign/digest', headers, JSON.stringify({ digest, txMetadata }))
}
