import type { Hex } from '@countersign/protocol'
import { APP_ORIGIN } from '@countersign/testing/launcher'
import { createTx, toDigest } from '@countersign/testing/stack'

/** A request and its answer. */
export type Answer = {
  kind: 'transaction' | 'authorization' | 'message' | 'typed-data'
  /** Caller and content; undefined if a repeated request gives a new signature. */
  same: string | undefined
  status: number
  signature?: Hex
  slug?: string
  /** Error code. */
  code?: string
}

export const IMPLEMENTATION: Hex = `0x${'22'.repeat(20)}`

type SignRequest = { path: string; body: object; kind: Answer['kind']; same?: string }

/** Kinds of requests per twenty. Some transactions are repeated later, and some are requested twice at once at different coordinators. */
const SHARES = { transaction: 11, again: 2, twice: 2, message: 2, 'typed-data': 2, authorization: 1 }

/** Callers that request signatures of all kinds and record the answers. */
export function createCallers(parameters: {
  urls: readonly string[]
  cookies: readonly string[]
  random: () => number
}) {
  const { urls, cookies, random } = parameters
  const answers: Answer[] = []
  const choose = <Value>(values: readonly Value[]) => values[Math.floor(random() * values.length)] as Value
  const earlier: { cookie: string; nonce: number }[] = []
  let nonce = 0

  async function send(url: string, cookie: string, { path, body, kind, same }: SignRequest): Promise<Answer> {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { origin: APP_ORIGIN, 'content-type': 'application/json', cookie },
      body: JSON.stringify(body),
    })
    const { status } = response
    const { signature, slug, code } = (await response.json()) as { signature: Hex; slug: string; code: string }
    const one: Answer = { kind, same, status, ...(status === 200 ? { signature, slug } : { code }) }
    answers.push(one)
    return one
  }

  const toTransaction = (cookie: string, of: number): SignRequest => {
    const txMetadata = createTx(of)
    const digest = toDigest(txMetadata)
    return {
      path: '/sign/digest',
      body: { digest, txMetadata },
      kind: 'transaction',
      same: `${cookies.indexOf(cookie)} ${digest}`,
    }
  }

  return {
    answers: answers as readonly Answer[],
    /** Sends one random request, or two at once. */
    async call(): Promise<void> {
      const kinds = Object.entries(SHARES).flatMap(([kind, share]) => Array<string>(share).fill(kind))
      const cookie = choose(cookies)
      const kind = choose(kinds) as keyof typeof SHARES
      nonce += 1
      switch (kind) {
        case 'again': {
          const one = earlier.length === 0 ? { cookie, nonce } : choose(earlier)
          return void (await send(choose(urls), one.cookie, toTransaction(one.cookie, one.nonce)))
        }
        case 'twice': {
          const request = toTransaction(cookie, nonce)
          return void (await Promise.all(urls.map((url) => send(url, cookie, request))))
        }
        case 'transaction':
          earlier.push({ cookie, nonce })
          return void (await send(choose(urls), cookie, toTransaction(cookie, nonce)))
        case 'authorization': {
          const body = { chainId: 31337, address: IMPLEMENTATION, nonce }
          const same = `${cookies.indexOf(cookie)} authorization ${nonce}`
          return void (await send(choose(urls), cookie, { path: '/sign/authorization', body, kind, same }))
        }
        case 'message': {
          const body = { message: `0x${Buffer.from(`message ${nonce}`).toString('hex')}` }
          return void (await send(choose(urls), cookie, { path: '/sign/message', body, kind }))
        }
        case 'typed-data':
          return void (await send(choose(urls), cookie, { path: '/sign/typed-data', body: toTypedData(nonce), kind }))
      }
    },
  }
}

function toTypedData(nonce: number) {
  return {
    domain: { name: 'Token', version: '1', chainId: 1, verifyingContract: `0x${'11'.repeat(20)}` },
    types: { Permit: [{ name: 'value', type: 'uint256' }] },
    primaryType: 'Permit',
    message: { value: String(nonce) },
  }
}

/** Finds contradictory answers, and statuses other than 200 and 503. */
export function findAnswerFaults(answers: readonly Answer[]): string[] {
  const faults: string[] = []
  const byName = new Map<string, Answer>()
  const slugs = new Map<string, string>()
  for (const one of answers) {
    if (one.status !== 200) {
      if (one.status !== 503) faults.push(`unexpected answer ${one.status} ${one.code}`)
      continue
    }
    const name = one.same ?? `${one.kind} ${one.slug}`
    const earlier = byName.get(name)
    if (
      earlier !== undefined &&
      (one.same === undefined || earlier.slug !== one.slug || earlier.signature !== one.signature)
    )
      faults.push(`${name} has two answers: ${earlier.slug} and ${one.slug}`)
    const other = slugs.get(one.slug ?? '')
    if (other !== undefined && other !== name) faults.push(`slug ${one.slug} was returned for ${other} and ${name}`)
    byName.set(name, one)
    slugs.set(one.slug ?? '', name)
  }
  return faults
}
