import { Agent as PlainAgent, request as sendPlain } from 'node:http'
import { Agent, request as sendEncrypted } from 'node:https'
import { setTimeout as wait } from 'node:timers/promises'
import type { TxMetadata, WalletInfo } from '@countersign/protocol'
import { APP_ORIGIN } from '@countersign/testing/launcher'
import { createTx, createUser, toDigest } from '@countersign/testing/stack'
import type { ReceivedSignature } from '../audit.ts'

/** One try to get a signature, by the clock of `performance`. The failure is a status with its code, or what became of the connection. */
type Try = { sentAt: number; endedAt: number; failure: string | undefined }

export type Load = {
  /** Sends nothing new, and resolves when everything that was asked for is answered, or the time is over. */
  finish(timeoutMs: number): Promise<void>
  readonly answered: readonly ReceivedSignature[]
  /** How many were asked for. */
  asked(): number
  /** Tries that ended after a moment. */
  since(moment: number): readonly Try[]
  /** Asks for everything that was answered once more: what is answered otherwise now. */
  askAgain(): Promise<string[]>
}

/** Without an agent requests are made by `fetch`, which sends a request again when a reused connection turns out to be closed. */
type Person = { cookie: string; address: string; agent: Agent | PlainAgent | undefined }
type Answer = Pick<ReceivedSignature, 'signature' | 'slug'>

const RETRY_MS = 250
const ANSWER_MS = 20_000
const LANES = 16

/**
 * New signatures at a fixed rate, whether or not the earlier ones have been answered; a caller that gets none asks again for the same,
 * unless `asksOnce`. Each person comes from a separate address, since the proxy bounds connections by address.
 */
export async function startLoad(parameters: {
  url: string
  subjects: readonly string[]
  rate: number
  asksOnce?: boolean
}): Promise<Load> {
  const { url, subjects, rate, asksOnce = false } = parameters
  const people = await Promise.all(subjects.map((subject, index) => signIn(url, subject, asksOnce ? undefined : index)))
  const answers = new Map<TxMetadata, { person: Person; answer: ReceivedSignature }>()
  const tries: Try[] = []
  const open = new Set<Promise<void>>()
  let count = 0
  let isAbandoned = false

  /** The answer, or in few words why there is none. */
  async function sign(person: Person, tx: TxMetadata): Promise<Answer | string> {
    const body = JSON.stringify({ digest: toDigest(tx), txMetadata: tx })
    const { status, text } = await post(new URL('/sign/digest', url), person, body)
    if (status === 200) return JSON.parse(text) as Answer
    return `${status} ${/"code":"(\w+)"/.exec(text)?.[1] ?? 'without a code of ours'}`
  }

  async function ask(person: Person, tx: TxMetadata) {
    while (!isAbandoned) {
      const each: Try = { sentAt: performance.now(), endedAt: Number.POSITIVE_INFINITY, failure: undefined }
      tries.push(each)
      const answer = await sign(person, tx).catch(toReason)
      each.endedAt = performance.now()
      if (typeof answer !== 'string') {
        const { signature, slug } = answer
        answers.set(tx, { person, answer: { digest: toDigest(tx), signature, slug, address: person.address } })
        return
      }
      each.failure = answer
      if (asksOnce) return
      await wait(RETRY_MS)
    }
  }

  // Somewhere in so many that no two loads meet.
  const first = Math.floor(Math.random() * 2 ** 40)
  const timer = setInterval(() => {
    const person = people[count % people.length]
    if (person === undefined) return
    const asked = ask(person, createTx(first + count++))
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
    get answered() {
      return [...answers.values()].map(({ answer }) => answer)
    },
    asked: () => count,
    since: (moment) => tries.filter(({ endedAt }) => endedAt > moment),
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
      for (const { agent } of people) agent?.destroy()
      return changed
    },
  }
}

async function signIn(url: string, subject: string, index: number | undefined): Promise<Person> {
  const user = createUser({ url })
  await user.signIn(subject)
  const provisioned = await user.post('/wallet/provision')
  if (provisioned.status !== 200) throw new Error(`no wallet: ${await provisioned.text()}`)
  const { address } = (await provisioned.json()) as WalletInfo
  const { cookie } = user
  if (index === undefined) return { cookie, address, agent: undefined }
  const options = { keepAlive: true, localAddress: `127.0.1.${index + 1}` }
  return {
    cookie: user.cookie,
    address,
    agent: url.startsWith('https:') ? new Agent(options) : new PlainAgent(options),
  }
}

async function post(url: URL, { cookie, agent }: Person, body: string): Promise<{ status: number; text: string }> {
  if (agent === undefined) {
    const headers = { origin: APP_ORIGIN, cookie, 'content-type': 'application/json' }
    const response = await fetch(url, { method: 'POST', headers, body })
    return { status: response.status, text: await response.text() }
  }
  const headers = {
    ...{ host: url.host, origin: APP_ORIGIN, cookie, 'content-type': 'application/json' },
    'content-length': Buffer.byteLength(body),
  }
  const signal = AbortSignal.timeout(ANSWER_MS)
  const options = { host: '127.0.0.1', port: url.port, path: url.pathname, method: 'POST', agent, signal, headers }
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? sendEncrypted : sendPlain
    const sent = send({ ...options, servername: 'localhost' }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

function toReason(error: Error & { code?: string }): string {
  return error.name === 'TimeoutError' || error.name === 'AbortError'
    ? 'no answer in time'
    : (error.code ?? error.message)
}
