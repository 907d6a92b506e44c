import {
  isTerminalProofStatus,
  type ProofPayload,
  proofStatuses,
  type WalletInfo,
  withinTimeLimit,
} from '@countersign/protocol'
import { createTx, createUser, type TestUser, toDigest } from '@countersign/testing/stack'
import type { ReceivedSignature } from '../audit.ts'

/** What a client saw of a proof. */
type SeenProof = Pick<ProofPayload, 'status' | 'ipfsCid'>

type LoadReport = {
  answered: ReceivedSignature[]
  counts: { signIns: number; asked: number; refused: number; polls: number; repeats: number }
  /** Answers that contradict earlier ones: a signature, slug, wallet, state or CID that changed. */
  changed: string[]
}

export type Load = {
  /** Asks for no new signatures, and resolves when every one that was asked for has been answered and every proof is terminal. */
  finish(timeoutMs: number): Promise<void>
  progress(): string
  report(): LoadReport
}

type User = {
  subject: string
  client: TestUser
  signingIn: Promise<void> | undefined
  isSignedIn: boolean
  wallet: WalletInfo | undefined
  nonce: number
}

/** A user signs out, and in again, about once in so many signatures. */
const SIGN_OUT_EVERY = 25
/** One in so many digests is asked for again after it was answered. */
const REPEAT_EVERY = 10
const RETRY_MS = 400
/** As a browser would give up. */
const ANSWER_TIMEOUT_MS = 20_000

/** Users who sign in, sign and poll at a fixed rate, and who ask again when they get no answer. */
export function startLoad(parameters: {
  url: string
  subjects: readonly string[]
  /** New signatures, and polls, per second. */
  signRate: number
  pollRate: number
  random: () => number
}): Load {
  const { url, signRate, pollRate, random } = parameters
  const users = parameters.subjects.map((subject): User => {
    const client = createUser({ url })
    return { subject, client, signingIn: undefined, isSignedIn: false, wallet: undefined, nonce: 0 }
  })
  const answers = new Map<string, ReceivedSignature>()
  const slugs = new Set<string>()
  const proofs = new Map<string, SeenProof>()
  const open: string[] = []
  const changed: string[] = []
  const counts = { signIns: 0, asked: 0, refused: 0, polls: 0, repeats: 0 }
  const tasks = new Set<Promise<void>>()
  let isOver = false
  let isAbandoned = false

  /** One sign-in at a time for each user, however many signatures wait for it. */
  function signIn(user: User): Promise<void> {
    user.signingIn ??= (async () => {
      // A new browser: what is left of a sign-in that was cut off does not matter.
      user.client = createUser({ url })
      await inTime(user.client.signIn(user.subject))
      const provisioned = await inTime(user.client.post('/wallet/provision'))
      const looked = await inTime(user.client.get('/wallet/me'))
      for (const response of [provisioned, looked]) if (response.status === 200) noteWallet(user, await response.json())
      if (user.wallet === undefined) throw new Error('no wallet')
      user.isSignedIn = true
      counts.signIns += 1
    })().finally(() => {
      user.signingIn = undefined
    })
    return user.signingIn
  }

  function noteWallet(user: User, wallet: WalletInfo) {
    user.wallet ??= wallet
    if (JSON.stringify(user.wallet) !== JSON.stringify(wallet)) changed.push(`the wallet of ${user.subject}`)
  }

  /** Asks until it is answered, or until the load is abandoned. */
  async function sign(user: User, nonce: number): Promise<void> {
    const tx = createTx(nonce)
    const digest = toDigest(tx)
    for (;;) {
      try {
        if (!user.isSignedIn) await signIn(user)
        const response = await inTime(user.client.sign(tx))
        if (response.status === 200) {
          const { signature, slug } = (await response.json()) as Pick<ReceivedSignature, 'signature' | 'slug'>
          const address = user.wallet?.address ?? ''
          return note(`${user.subject}, nonce ${nonce}`, { digest, signature, slug, address })
        }
        counts.refused += 1
        if (response.status === 401) user.isSignedIn = false
      } catch {
        counts.refused += 1
      }
      if (isAbandoned) return
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS * (0.5 + random())))
    }
  }

  /** One answer for each wallet and digest, however often it is asked for. */
  function note(key: string, answer: ReceivedSignature) {
    const earlier = answers.get(key)
    if (earlier === undefined) {
      if (slugs.has(answer.slug)) changed.push(`${answer.slug} was given twice`)
      slugs.add(answer.slug)
      answers.set(key, answer)
      open.push(answer.slug)
    } else if (earlier.signature !== answer.signature || earlier.slug !== answer.slug) {
      changed.push(`the signature of ${key}: ${earlier.slug} became ${answer.slug}`)
    }
  }

  async function act(user: User) {
    const nonce = user.nonce++
    counts.asked += 1
    await sign(user, nonce)
    if (isOver) return
    if (random() < 1 / REPEAT_EVERY) {
      counts.repeats += 1
      await sign(user, nonce)
    }
    if (random() < 1 / SIGN_OUT_EVERY && user.isSignedIn) {
      user.isSignedIn = false
      await inTime(user.client.post('/auth/logout')).catch(() => {})
    }
  }

  async function poll(slug: string) {
    counts.polls += 1
    try {
      const response = await inTime(fetch(`${url}/proof/${slug}`))
      if (response.status === 404) changed.push(`${slug} is not known any more`)
      if (response.status !== 200) return
      const { status, ipfsCid } = (await response.json()) as SeenProof
      const earlier = proofs.get(slug)
      if (earlier !== undefined && !isForward(earlier, { status, ipfsCid })) {
        changed.push(`${slug}: ${earlier.status} ${earlier.ipfsCid} became ${status} ${ipfsCid}`)
      }
      proofs.set(slug, { status, ipfsCid })
    } catch {
      // It will be asked again.
    }
  }

  const track = (task: Promise<void>) => {
    tasks.add(task)
    void task.finally(() => tasks.delete(task))
  }
  let turn = 0
  const signTimer = setInterval(() => {
    const user = users[turn++ % users.length]
    if (user !== undefined) track(act(user))
  }, 1000 / signRate)
  const pollTimer = setInterval(() => {
    const slug = open.shift()
    if (slug === undefined) return
    track(
      poll(slug).then(() => {
        const seen = proofs.get(slug)
        if (seen === undefined || !isTerminalProofStatus(seen.status)) open.push(slug)
      }),
    )
  }, 1000 / pollRate)

  return {
    async finish(timeoutMs) {
      isOver = true
      clearInterval(signTimer)
      const until = Date.now() + timeoutMs
      while ((tasks.size > 0 || open.length > 0) && Date.now() < until) {
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
      isAbandoned = true
      clearInterval(pollTimer)
      await Promise.all(tasks)
    },
    progress: () =>
      `${answers.size} of ${counts.asked} signatures answered, ${open.length} proofs open, ${counts.refused} tries failed`,
    report: () => ({ answered: [...answers.values()], counts, changed }),
  }
}

/** A state may be missed between two polls, but none is gone back from; and a CID stays. */
function isForward(earlier: SeenProof, later: SeenProof): boolean {
  if (earlier.ipfsCid !== null && earlier.ipfsCid !== later.ipfsCid) return false
  if (isTerminalProofStatus(earlier.status)) return earlier.status === later.status
  return proofStatuses.indexOf(later.status) >= proofStatuses.indexOf(earlier.status)
}

function inTime<Value>(task: Promise<Value>): Promise<Value> {
  return withinTimeLimit(ANSWER_TIMEOUT_MS, () => task)
}
