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

/** One attempt to get a signature, with times of `performance.now()`. The failure is a status with its code, or a connection error. */
type Try = { sentAt: number; endedAt: number; failure: string | undefined }

type Answer = Pick<ReceivedSignature, 'signature' | 'slug'>
type SeenProof = Pick<ProofPayload, 'status' | 'ipfsCid'>

/** Without an agent, requests use `fetch`, which resends a request when a reused connection turns out to be closed. */
type Person = {
  subject: string
  client: TestUser
  wallet: WalletInfo
  signingIn: Promise<void> | undefined
  agent: Agent | PlainAgent | undefined
}

/** Actions of users besides signing, in rates and shares of a busy day. */
export type Habits = { pollRate: number; signOutShare: number; repeatShare: number; random(): number }

export type Load = Awaited<ReturnType<typeof startLoad>>

const RETRY_MS = 250
/** A browser would time out too. */
const ANSWER_MS = 20_000
const LANES = 16

/**
 * Requests new signatures at a fixed rate, without waiting for earlier ones. Failed requests are retried unless `triesOnce` is set. Each user
 * has a separate source address, because HAProxy limits connections by address.
 */
export async function startLoad(parameters: {
  url: string
  subjects: readonly string[]
  rate: number
  triesOnce?: boolean
  habits?: Habits
}) {
  const { url, subjects, rate, triesOnce = false, habits } = parameters
  const answers = new Map<TxMetadata, { person: Person; answer: ReceivedSignature }>()
  const slugs = new Set<string>()
  const proofs = new Map<string, SeenProof>()
  /** Slugs of proofs to poll. */
  const open: string[] = []
  const tries: Try[] = []
  const changed: string[] = []
  const counts = { requested: 0, signIns: 0, failed: 0, polls: 0, repeats: 0 }
  const tasks = new Set<Promise<void>>()
  let isOver = false
  let isAbandoned = false
  const people = await Promise.all(subjects.map((subject, index) => enter(subject, triesOnce ? undefined : index)))

  async function enter(subject: string, index: number | undefined): Promise<Person> {
    counts.signIns += 1
    const options = { keepAlive: true, localAddress: `127.0.1.${(index ?? 0) + 1}` }
    const agent = url.startsWith('https:') ? new Agent(options) : new PlainAgent(options)
    const person = { subject, signingIn: undefined, agent: index === undefined ? undefined : agent }
    return { ...person, ...(await signIn(url, subject)) }
  }

  /** Runs one sign-in at a time for each user, shared by all waiting signatures. */
  function signInAgain(person: Person): Promise<void> {
    person.signingIn ??= signIn(url, person.subject)
      .then(({ client, wallet }) => {
        counts.signIns += 1
        if (JSON.stringify(wallet) !== JSON.stringify(person.wallet))
          changed.push(`the wallet of ${person.subject} changed`)
        person.client = client
      })
      .finally(() => {
        person.signingIn = undefined
      })
    return person.signingIn
  }

  /** Returns the answer, or the reason of the failure in a few words. */
  async function sign(person: Person, tx: TxMetadata): Promise<Answer | string> {
    await person.signingIn
    const body = JSON.stringify({ digest: toDigest(tx), txMetadata: tx })
    const { status, text } = await post(new URL('/sign/digest', url), person, body)
    if (status === 200) return JSON.parse(text) as Answer
    if (status === 401) await signInAgain(person)
    return `${status} ${/"code":"(\w+)"/.exec(text)?.[1] ?? 'without an error code'}`
  }

  /** Retries until there is an answer or the load is abandoned. */
  async function request(person: Person, tx: TxMetadata) {
    while (!isAbandoned) {
      const each: Try = { sentAt: performance.now(), endedAt: Number.POSITIVE_INFINITY, failure: undefined }
      tries.push(each)
      const answer = await sign(person, tx).catch(toReason)
      each.endedAt = performance.now()
      if (typeof answer !== 'string') return record(person, tx, answer)
      each.failure = answer
      counts.failed += 1
      if (triesOnce) return
      await wait(RETRY_MS)
    }
  }

  /** Records an answer. A wallet and digest must always get the same one. */
  function record(person: Person, tx: TxMetadata, { signature, slug }: Answer) {
    const earlier = answers.get(tx)?.answer
    if (earlier === undefined) {
      if (slugs.has(slug)) changed.push(`slug ${slug} was returned twice`)
      slugs.add(slug)
      open.push(slug)
      const answer = { digest: toDigest(tx), signature, slug, address: person.wallet.address }
      answers.set(tx, { person, answer })
    } else if (earlier.signature !== signature || earlier.slug !== slug) changed.push(`${earlier.slug} became ${slug}`)
  }

  async function act(person: Person, tx: TxMetadata) {
    // Sends some requests twice, at the same time (perhaps to another coordinator) or after the answer.
    const isTwice = habits !== undefined && habits.random() < habits.repeatShare
    await Promise.all(isTwice ? [request(person, tx), request(person, tx)] : [request(person, tx)])
    if (isTwice) counts.repeats += 1
    if (habits === undefined || isOver) return
    if (habits.random() < habits.repeatShare) {
      counts.repeats += 1
      await request(person, tx)
    }
    if (habits.random() < habits.signOutShare) await inTime(person.client.post('/auth/logout')).catch(() => {})
  }

  /** A poll may miss a state, but the state must never go backwards, and a CID must never change. */
  async function poll(slug: string) {
    counts.polls += 1
    const response = await inTime(fetch(`${url}/proof/${slug}`)).catch(() => undefined)
    if (response?.status === 404) changed.push(`proof ${slug} is no longer found`)
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
  // A random start, so that no two loads use the same nonces.
  const first = Math.floor(Math.random() * 2 ** 40)
  const signing = setInterval(() => {
    const person = people[counts.requested % people.length]
    if (person !== undefined) track(act(person, createTx(first + counts.requested++)))
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
    /** Answers that contradict earlier ones: a changed signature, slug, wallet, state or CID. */
    changed: changed as readonly string[],
    get answered(): ReceivedSignature[] {
      return [...answers.values()].map(({ answer }) => answer)
    },
    /** Attempts that ended after a moment. Pending ones are left out. */
    since: (moment: number): readonly Try[] =>
      tries.filter(({ endedAt }) => endedAt > moment && Number.isFinite(endedAt)),
    /** Stops sending new requests. Resolves when all signatures are answered and all polled proofs are final, or the time is over. */
    async finish(timeoutMs: number): Promise<void> {
      isOver = true
      clearInterval(signing)
      await until(() => tasks.size === 0 && (habits === undefined || open.length === 0), timeoutMs, 50)
      isAbandoned = true
      clearInterval(polling)
      await Promise.all(tasks)
    },
    progress: () => `${answers.size} of ${counts.requested} signatures answered, ${counts.failed} attempts failed`,
    /** Repeats every answered request and returns the answers that differ now. */
    async repeatAll(): Promise<string[]> {
      const others: string[] = []
      const next = answers.entries()
      const repeatEach = async () => {
        for (const [tx, { person, answer }] of next) {
          const again = await sign(person, tx).catch(toReason)
          if (typeof again === 'string') others.push(`${answer.slug}: ${again}`)
          else if (again.slug !== answer.slug || again.signature !== answer.signature) {
            others.push(`${answer.slug} became ${again.slug}`)
          }
        }
      }
      await Promise.all(Array.from({ length: LANES }, repeatEach))
      for (const { agent } of people) agent?.destroy()
      return others
    },
  }
}

/** Signs in with a new cookie jar. */
async function signIn(url: string, subject: string): Promise<Pick<Person, 'client' | 'wallet'>> {
  const client = createUser({ url })
  await inTime(client.signIn(subject))
  const provisioned = await inTime(client.post('/wallet/provision'))
  if (provisioned.status !== 200) throw new Error(`wallet not created: ${await provisioned.text()}`)
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
  return isLate ? 'timed out' : (error.code ?? error.message)
}

const inTime = <Value>(task: Promise<Value>): Promise<Value> => withinTimeLimit(ANSWER_MS, () => task)
