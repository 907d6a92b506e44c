import type { Hex } from '@countersign/protocol'
import { APP_ORIGIN } from '@countersign/testing/launcher'
import { createTx, toDigest } from '@countersign/testing/stack'

/** What a caller asked for, and was told. */
export type Told = {
  kind: 'transaction' | 'authorization' | 'message' | 'typed-data'
  /** Who asked for what; undefined where each asking is another signature. */
  same: string | undefined
  status: number
  signature?: Hex
  slug?: string
  /** Of a failure. */
  code?: string
}

export const IMPLEMENTATION: Hex = `0x${'22'.repeat(20)}`

type Asked = { path: string; body: object; kind: Told['kind']; same?: string }

/** How many of each kind, in twenty. Some transactions are asked for again, and some by two callers at once, at different coordinators. */
const SHARES = { transaction: 11, again: 2, twice: 2, message: 2, 'typed-data': 2, authorization: 1 }

/** Callers that ask for signatures of all kinds, and note what each was told. */
export function createAskers(parameters: {
  /** Of coordinators. */
  urls: readonly string[]
  /** Of users. */
  cookies: readonly string[]
  random: () => number
}) {
  const { urls, cookies, random } = parameters
  const told: Told[] = []
  const choose = <Value>(values: readonly Value[]) => values[Math.floor(random() * values.length)] as Value
  const earlier: { cookie: string; nonce: number }[] = []
  let nonce = 0

  async function ask(url: string, cookie: string, { path, body, kind, same }: Asked): Promise<Told> {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { origin: APP_ORIGIN, 'content-type': 'application/json', cookie },
      body: JSON.stringify(body),
    })
    const { status } = response
    const { signature, slug, code } = (await response.json()) as { signature: Hex; slug: string; code: string }
    const one: Told = { kind, same, status, ...(status === 200 ? { signature, slug } : { code }) }
    told.push(one)
    return one
  }

  const toTransaction = (cookie: string, of: number): Asked => {
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
    told: told as readonly Told[],
    /** One asking, or two at once. */
    async askOnce(): Promise<void> {
      const kinds = Object.entries(SHARES).flatMap(([kind, share]) => Array<string>(share).fill(kind))
      const cookie = choose(cookies)
      const kind = choose(kinds) as keyof typeof SHARES
      nonce += 1
      switch (kind) {
        case 'again': {
          const one = earlier.length === 0 ? { cookie, nonce } : choose(earlier)
          return void (await ask(choose(urls), one.cookie, toTransaction(one.cookie, one.nonce)))
        }
        case 'twice': {
          const asked = toTransaction(cookie, nonce)
          return void (await Promise.all(urls.map((url) => ask(url, cookie, asked))))
        }
        case 'transaction':
          earlier.push({ cookie, nonce })
          return void (await ask(choose(urls), cookie, toTransaction(cookie, nonce)))
        case 'authorization': {
          const body = { chainId: 31337, address: IMPLEMENTATION, nonce }
          const same = `${cookies.indexOf(cookie)} authorization ${nonce}`
          return void (await ask(choose(urls), cookie, { path: '/sign/authorization', body, kind, same }))
        }
        case 'message': {
          const body = { message: `0x${Buffer.from(`message ${nonce}`).toString('hex')}` }
          return void (await ask(choose(urls), cookie, { path: '/sign/message', body, kind }))
        }
        case 'typed-data':
          return void (await ask(choose(urls), cookie, { path: '/sign/typed-data', body: toTypedData(nonce), kind }))
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

/** Answers that contradict each other, and statuses that are neither a signature nor a plain refusal for now. */
export function findToldFaults(told: readonly Told[]): string[] {
  const faults: string[] = []
  const answers = new Map<string, Told>()
  const slugs = new Map<string, string>()
  for (const one of told) {
    if (one.status !== 200) {
      if (one.status !== 503) faults.push(`a caller was told ${one.status} ${one.code}`)
      continue
    }
    const name = one.same ?? `${one.kind} ${one.slug}`
    const earlier = answers.get(name)
    if (
      earlier !== undefined &&
      (one.same === undefined || earlier.slug !== one.slug || earlier.signature !== one.signature)
    )
      faults.push(`${name} was answered with ${earlier.slug} and ${one.slug}`)
    const other = slugs.get(one.slug ?? '')
    if (other !== undefined && other !== name) faults.push(`${one.slug} was given for ${other} and ${name}`)
    answers.set(name, one)
    slugs.set(one.slug ?? '', name)
  }
  return faults
}
