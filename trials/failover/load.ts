import { Agent, request } from 'node:https'
import { setTimeout as wait } from 'node:timers/promises'
import type { TxMetadata, WalletInfo } from '@countersign/protocol'
import { APP_ORIGIN } from '@countersign/testing/launcher'
import { createTx, createUser, type ReceivedSignature, toDigest } from '@countersign/testing/stack'

/** A failed try to get a signature, in few words: a status with its code, or what became of the connection. */
type Failure = { at: number; reason: string }

export type Load = {
  /** Sends nothing new, and resolves when everything that was asked for is answered, or the time is over. */
  finish(timeoutMs: number): Promise<void>
  /** Moments of good answers, by the clock of `performance`. */
  readonly goodAt: readonly number[]
  readonly failures: readonly Failure[]
  readonly answered: readonly ReceivedSignature[]
  /** How many were asked for. */
  asked(): number
  /** Asks for everything that was answered once more: what is answered otherwise now. */
  askAgain(): Promise<string[]>
}

type Person = { cookie: string; address: string; agent: Agent }
type Answer = Pick<ReceivedSignature, 'signature' | 'slug'>

const RETRY_MS = 250
const ANSWER_MS = 20_000
const LANES = 16

/**
 * New signatures at a fixed rate, whether or not the earlier ones have been answered; who gets none asks again for the same. Each person
 * comes from an address of their own, since the proxy bounds connections by address.
 */
export async function startLoad(parameters: {
  /** With https. */
  url: string
  subjects: readonly string[]
  rate: number
}): Promise<Load> {
  const { url, subjects, rate } = parameters
  const people = await Promise.all(subjects.map((subject, index) => signIn(url, subject, index)))
  const answers = new Map<TxMetadata, { person: Person; answer: ReceivedSignature }>()
  const goodAt: number[] = []
  const failures: Failure[] = []
  const open = new Set<Promise<void>>()
  let count = 0
  let isAbandoned = false

  /** The answer, or in few words why there is none. */
  async function sign(person: Person, tx: TxMetadata): Promise<Answer | string> {
    const body = JSON.stringify({ digest: toDigest(tx), txMetadata: tx })
    const { status, text } = await post(new URL('/sign/digest', url), person, body)
    if (status === 200) return JSON.parse(text) as Answer
    return `${status} ${readCode(text)}`
  }

  async function ask(person: Person, tx: TxMetadata) {
    while (!isAbandoned) {
      const answer = await sign(person, tx).catch(toReason)
      if (typeof answer !== 'string') {
        goodAt.push(performance.now())
        const { signature, slug } = answer
        const { address } = person
        answers.set(tx, { person, answer: { digest: toDigest(tx), signature, slug, address } })
        return
      }
      failures.push({ at: performance.now(), reason: answer })
      await wait(RETRY_MS)
    }
  }

  const timer = setInterval(() => {
    const person = people[count % people.length]
    if (person === undefined) return
    const asked = ask(person, createTx(count++))
    open.add(asked)
    void asked.finally(() => open.delete(asked))
  }, 1000 / rate)

  return {
    async finish(timeoutMs) {
      clearInterval(timer)
      const until = performance.now() + timeoutMs
      while (open.size > 0 && performance.now() < until) await wait(50)
      isAbandoned = true
      await Promise.all(open)
    },
    goodAt,
    failures,
    get answered() {
      return [...answers.values()].map(({ answer }) => answer)
    },
    asked: () => count,
    async askAgain() {
      const changed: string[] = []
      const next = answers.entries()
      const lanes = Array.from({ length: LANES }, async () => {
        for (const [tx, { person, answer }] of next) {
          const again = await sign(person, tx).catch(toReason)
          if (typeof again === 'string') changed.push(`${answer.slug}: ${again}`)
          else if (again.slug !== answer.slug || again.signature !== answer.signature) {
            changed.push(`${answer.slug} became ${again.slug}`)
          }
        }
      })
      await Promise.all(lanes)
      for (const { agent } of people) agent.destroy()
      return changed
    },
  }
}

/** The longest time between two good answers, of which the second is after a moment. */
export function findLongestPause(goodAt: readonly number[], since: number): number {
  const sorted = [...goodAt].sort((one, other) => one - other)
  return Math.max(0, ...sorted.map((at, index) => (index > 0 && at > since ? at - (sorted[index - 1] ?? at) : 0)))
}

/** How often each reason was given since a moment, the most frequent first. */
export function countReasons(failures: readonly Failure[], since = 0): { reason: string; count: number }[] {
  const byReason = Map.groupBy(
    failures.filter(({ at }) => at >= since),
    ({ reason }) => reason,
  )
  return [...byReason]
    .map(([reason, { length }]) => ({ reason, count: length }))
    .sort((one, other) => other.count - one.count)
}

async function signIn(url: string, subject: string, index: number): Promise<Person> {
  const user = createUser({ url })
  await user.signIn(subject)
  const provisioned = await user.post('/wallet/provision')
  if (provisioned.status !== 200) throw new Error(`no wallet: ${await provisioned.text()}`)
  const { address } = (await provisioned.json()) as WalletInfo
  return { cookie: user.cookie, address, agent: new Agent({ keepAlive: true, localAddress: `127.0.1.${index + 1}` }) }
}

function post(url: URL, { cookie, agent }: Person, body: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port: url.port,
        servername: 'localhost',
        path: url.pathname,
        method: 'POST',
        agent,
        signal: AbortSignal.timeout(ANSWER_MS),
        headers: {
          host: url.host,
          origin: APP_ORIGIN,
          cookie,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        },
      },
      (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          text += chunk
        })
        response.on('error', reject)
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Of a problem of ours. What a proxy says by itself has none. */
function readCode(text: string): string {
  try {
    return (JSON.parse(text) as { code?: string }).code ?? 'without a code'
  } catch {
    return 'that is no problem of ours'
  }
}

function toReason(error: Error & { code?: string }): string {
  return error.name === 'TimeoutError' || error.name === 'AbortError'
    ? 'no answer in time'
    : (error.code ?? error.message)
}
