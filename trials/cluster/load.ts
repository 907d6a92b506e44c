import { Agent as PlainAgent, request as sendPlain } from 'node:http'
import { Agent, request as sendEncrypted } from 'node:https'
import { setTimeout as wait } from 'node:timers/promises'
import {
  isTerminalProofStatus,
  type ProofPayload,
  proofStatuses,
  type TxMetadata,
  type WalletInfo,
  withinTimeLimit,
} from '@countersign/protocol'
import { APP_ORIGIN } from '@countersign/testing/launcher'
import { createTx, createUser, type TestUser, toDigest } from '@countersign/testing/stack'
import type { ReceivedSignature } from '../audit.ts'
import { until } from '../until.ts'

/** One try to get a signature, by the clock of `performance`. The failure is a status with its code, or what became of the connection. */
type Try = { sentAt: number; endedAt: number; failure: string | undefined }

type Answer = Pick<ReceivedSignature, 'signature' | 'slug'>
type SeenProof = Pick<ProofPayload, 'status' | 'ipfsCid'>

/** Without an agent `fetch` makes the requests, which sends a request again when a reused connection turns out to be closed. */
type Person = {
  subject: string
  client: TestUser
  wallet: WalletInfo
  signingIn: Promise<void> | undefined
  agent: Agent | PlainAgent | undefined
}

/** What people do besides signing. The rates and shares are those of a busy day. */
export type Habits = { pollRate: number; signOutShare: number; repeatShare: number; random(): number }

export type Load = Awaited<ReturnType<typeof startLoad>>

const RETRY_MS = 250
/** As a browser would give up. */
const ANSWER_MS = 20_000
const LANES = 16

/**
 * New signatures at a fixed rate, whether or not the earlier ones have been answered. A caller that gets none asks again for the same,
 * unless `asksOnce`. Each person comes from a separate address, since the proxy bounds connections by address.
 */
export async function startLoad(parameters: {
  url: string
  subjects: readonly string[]
  rate: number
  asksOnce?: boolean
  habits?: Habits
}) {
  const { url, subjects, rate, asksOnce = false, habits } = parameters
  const answers = new Map<TxMetadata, { person: Person; answer: ReceivedSignature }>()
  const slugs = new Set<string>()
  const proofs = new Map<string, SeenProof>()
  /** Proofs to poll. */
  const open: string[] = []
  const tries: Try[] = []
  const changed: string[] = []
  const counts = { asked: 0, signIns: 0, refused: 0, polls: 0, repeats: 0 }
  const tasks = new Set<Promise<void>>()
  let isOver = false
  let isAbandoned = false
  const people = await Promise.all(subjects.map((subject, index) => enter(subject, asksOnce ? undefined : index)))

  async function enter(subject: string, index: number | undefined): Promise<Person> {
    counts.signIns += 1
    const options = { keepAlive: true, localAddress: `127.0.1.${(index ?? 0) + 1}` }
    const agent = url.startsWith('https:') ? new Agent(options) : new PlainAgent(options)
    const person = { subject, signingIn: undefined, agent: index === undefined ? undefined : agent }
    return { ...person, ...(await signIn(url, subject)) }
  }

  /** One sign-in at a time for each person, however many signatures wait for it. */
  function signInAgain(person: Person): Promise<void> {
    person.signingIn ??= signIn(url, person.subject)
      .then(({ client, wallet }) => {
        counts.signIns += 1
        if (JSON.stringify(wallet) !== JSON.stringify(person.wallet)) changed.push(`the wallet of ${person.subject}`)
        person.client = client
      })
      .finally(() => {
        person.signingIn = undefined
      })
    return person.signingIn
  }

  /** The answer, or in few words why there is none. */
  async function sign(person: Person, tx: TxMetadata): Promise<Answer | string> {
    await person.signingIn
    const body = JSON.stringify({ digest: toDigest(tx), txMetadata: tx })
    const { status, text } = await post(new URL('/sign/digest', url), person, body)
    if (status === 200) return JSON.parse(text) as Answer
    if (status === 401) await signInAgain(person)
    return `${status} ${/"code":"(\w+)"/.exec(text)?.[1] ?? 'without a code of ours'}`
  }

  /** Asks until it is answered, or until the load is abandoned. */
  async function ask(person: Person, tx: TxMetadata) {
    while (!isAbandoned) {
      const each: Try = { sentAt: performance.now(), endedAt: Number.POSITIVE_INFINITY, failure: undefined }
      tries.push(each)
      const answer = await sign(person, tx).catch(toReason)
      each.endedAt = performance.now()
      if (typeof answer !== 'string') return note(person, tx, answer)
      each.failure = answer
      counts.refused += 1
      if (asksOnce) return
      await wait(RETRY_MS)
    }
  }

  /** One answer for each wallet and digest, however often it is asked for. */
  function note(person: Person, tx: TxMetadata, { signature, slug }: Answer) {
    const earlier = answers.get(tx)?.answer
    if (earlier === undefined) {
      if (slugs.has(slug)) changed.push(`${slug} was given twice`)
      slugs.add(slug)
      open.push(slug)
      const answer = { digest: toDigest(tx), signature, slug, address: person.wallet.address }
      answers.set(tx, { person, answer })
    } else if (earlier.signature !== signature || earlier.slug !== slug) changed.push(`${earlier.slug} became ${slug}`)
  }

  async function act(person: Person, tx: TxMetadata) {
    // Once more at the same time, perhaps of another coordinator, or after the answer.
    const isTwice = habits !== undefined && habits.random() < habits.repeatShare
    await Promise.all(isTwice ? [ask(person, tx), ask(person, tx)] : [ask(person, tx)])
    if (isTwice) counts.repeats += 1
    if (habits === undefined || isOver) return
    if (habits.random() < habits.repeatShare) {
      counts.repeats += 1
      await ask(person, tx)
    }
    if (habits.random() < habits.signOutShare) await inTime(person.client.post('/auth/logout')).catch(() => {})
  }

  /** A state may be missed between two polls, but none is gone back from; and a CID stays. */
  async function poll(slug: string) {
    counts.polls += 1
    const response = await inTime(fetch(`${url}/proof/${slug}`)).catch(() => undefined)
    if (response?.status === 404) changed.push(`${slug} is not known any more`)
    const seen = response?.status === 200 ? ((await response.json().catch(() => undefined)) as SeenProof) : undefined
    const earlier = proofs.get(slug)
    if (seen !== undefined) {
      const { status, ipfsCid } = seen
      if (earlier !== undefined && !isForward(earlier, seen)) {
        changed.push(`${slug}: ${earlier.status} ${earlier.ipfsCid} became ${status} ${ipfsCid}`)
      }
      proofs.set(slug, { status, ipfsCid })
    }
    if (seen === undefined || !isTerminalProofStatus(seen.status)) open.push(slug)
  }

  const track = (task: Promise<void>) => {
    tasks.add(task)
    void task.finally(() => tasks.delete(task))
  }
  // Somewhere in so many that no two loads meet.
  const first = Math.floor(Math.random() * 2 ** 40)
  const signing = setInterval(() => {
    const person = people[counts.asked % people.length]
    if (person !== undefined) track(act(person, createTx(first + counts.asked++)))
  }, 1000 / rate)
  const polling = setInterval(
    () => {
      const slug = habits && open.shift()
      if (slug !== undefined) track(poll(slug))
    },
    1000 / (habits?.pollRate ?? 1),
  )

  return {
    counts: counts as Readonly<typeof counts>,
    /** Answers that contradict earlier ones: a signature, slug, wallet, state or CID that changed. */
    changed: changed as readonly string[],
    get answered(): ReceivedSignature[] {
      return [...answers.values()].map(({ answer }) => answer)
    },
    /** Tries that ended after a moment. Those under way have no end yet. */
    since: (moment: number): readonly Try[] =>
      tries.filter(({ endedAt }) => endedAt > moment && Number.isFinite(endedAt)),
    /** Sends nothing new. Resolves when all signatures are answered and all polled proofs are terminal, or the time is over. */
    async finish(timeoutMs: number): Promise<void> {
      isOver = true
      clearInterval(signing)
      await until(() => tasks.size === 0 && (habits === undefined || open.length === 0), timeoutMs, 50)
      isAbandoned = true
      clearInterval(polling)
      await Promise.all(tasks)
    },
    progress: () => `${answers.size} of ${counts.asked} signatures answered, ${counts.refused} tries failed`,
    /** Asks for everything that was answered once more: what is answered otherwise now. */
    async askAgain(): Promise<string[]> {
      const others: string[] = []
      const next = answers.entries()
      const askAll = async () => {
        for (const [tx, { person, answer }] of next) {
          const again = await sign(person, tx).catch(toReason)
          if (typeof again === 'string') others.push(`${answer.slug}: ${again}`)
          else if (again.slug !== answer.slug || again.signature !== answer.signature) {
            others.push(`${answer.slug} became ${again.slug}`)
          }
        }
      }
      await Promise.all(Array.from({ length: LANES }, askAll))
      for (const { agent } of people) agent?.destroy()
      return others
    },
  }
}

/** In a new browser. */
async function signIn(url: string, subject: string): Promise<Pick<Person, 'client' | 'wallet'>> {
  const client = createUser({ url })
  await inTime(client.signIn(subject))
  const provisioned = await inTime(client.post('/wallet/provision'))
  if (provisioned.status !== 200) throw new Error(`no wallet: ${await provisioned.text()}`)
  return { client, wallet: (await provisioned.json()) as WalletInfo }
}

async function post(url: URL, { client, agent }: Person, body: string): Promise<{ status: number; text: string }> {
  const plain = { origin: APP_ORIGIN, cookie: client.cookie, 'content-type': 'application/json' }
  if (agent === undefined) {
    const response = await fetch(url, { method: 'POST', headers: plain, body })
    return { status: response.status, text: await response.text() }
  }
  const headers = { ...plain, host: url.host, 'content-length': Buffer.byteLength(body) }
  const signal = AbortSignal.timeout(ANSWER_MS)
  const options = { host: '127.0.0.1', port: url.port, path: url.pathname, method: 'POST', agent, signal, headers }
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? sendEncrypted : sendPlain
    const sent = send({ ...options, servername: 'localhost' }, async (response) => {
      try {
        const text = Buffer.concat(await response.toArray()).toString()
        resolve({ status: response.statusCode ?? 0, text })
      } catch (error) {
        reject(error)
      }
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

function isForward(earlier: SeenProof, later: SeenProof): boolean {
  if (earlier.ipfsCid !== null && earlier.ipfsCid !== later.ipfsCid) return false
  if (isTerminalProofStatus(earlier.status)) return earlier.status === later.status
  return proofStatuses.indexOf(later.status) >= proofStatuses.indexOf(earlier.status)
}

function toReason(error: Error & { code?: string }): string {
  const isLate = error.name === 'TimeoutError' || error.name === 'AbortError'
  return isLate ? 'no answer in time' : (error.code ?? error.message)
}

const inTime = <Value>(task: Promise<Value>): Promise<Value> => withinTimeLimit(ANSWER_MS, () => task)
