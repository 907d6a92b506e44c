import { setTimeout } from 'node:timers/promises'
import { type TxMetadata, type WalletInfo, withinTimeLimit } from '@countersign/protocol'
import { createRandom, readAnchors } from '@countersign/testing'
import {
  type Audit,
  audit,
  createTx,
  createUser,
  type ReceivedSignature,
  type TestUser,
  toDigest,
  waitForProofs,
  withScope,
} from '@countersign/testing/stack'
import { startContract } from '../../contracts/startContract.ts'
import { type Backend, startBackend } from '../../services/coordinator/test/backend.ts'
import type { CrashPointName } from '../../services/coordinator/test/crashPoints.ts'
import { createVerifyTransaction } from '../verifyTransaction.ts'

export type FaultsParameters = {
  /** Where the coordinator is killed, one after the other. */
  points: readonly CrashPointName[]
  /** Kills at a random moment, after the points. */
  randomKills: number
  /** The enclave has a log; of the kills at random moments some hit a witness too. */
  hasLog?: boolean
  seed: number
  say(line: string): void
}

export type FaultsReport = Audit & {
  kills: number
  /** Signatures that a client received. */
  answered: number
  /** Digests for which a client received two different answers. */
  changed: string[]
}

type Answer = Pick<ReceivedSignature, 'signature' | 'slug'>

const SIGNINGS = 3
/** A crash point that is not reached in this time is a fault of the test. */
const REACH_MS = 60_000
const SETTLE_MS = 120_000
/** With a log, what a coordinator had begun when it died can be asked for again after 90 seconds at the latest. */
const AGAIN_MS = 150_000
/** How often a witness dies with the coordinator. */
const WITNESS_SHARE = 0.3

/**
 * Kills the coordinator, with its worker, again and again while signings arrive, on a real database, chain and IPFS node; then lets
 * it run, and audits from outside the signatures that clients received.
 */
export async function runFaults(parameters: FaultsParameters): Promise<FaultsReport> {
  const { points, randomKills, hasLog = false, say } = parameters
  return withScope(async ({ add }) => {
    const { chain, address: contract, env } = await startContract()
    add(chain, ({ stop }) => stop())
    const backend = add(await startBackend({ env, log: hasLog ? {} : undefined }), ({ stop }) => stop())
    if (hasLog) await backend.untilReady()
    const random = createRandom(parameters.seed)
    const answers = new Map<number, Answer>()
    const changed: string[] = []
    let nonce = 0
    let kills = 0
    const user = createUser(backend)
    await user.signIn('alice')
    const { address } = (await (await user.get('/wallet/me')).json()) as WalletInfo

    /** Asks for signatures; what a dying coordinator does not answer is no answer. */
    const sign = (nonces: readonly number[]) =>
      Promise.all(
        nonces.map(async (each) => {
          const answer = await ask(user, createTx(each))
          if (answer === undefined) return
          const earlier = answers.get(each)
          if (earlier !== undefined && (earlier.signature !== answer.signature || earlier.slug !== answer.slug)) {
            changed.push(toDigest(createTx(each)))
          }
          answers.set(each, answer)
        }),
      )
    const next = () => Array.from({ length: SIGNINGS }, () => nonce++)

    await backend.stopCoordinator('SIGKILL')
    for (const point of points) {
      const nonces = next()
      const isUp = await start(backend, { CRASH_AT: point })
      const signing = isUp ? sign(nonces) : Promise.resolve()
      await withinTimeLimit(REACH_MS, backend.coordinatorEnded, {
        createError: () => new Error(`the coordinator did not reach “${point}”`),
      })
      await signing
      kills += 1
      say(`killed ${point} (${answers.size} answered)`)
    }
    for (let round = 0; round < randomKills; round++) {
      await start(backend, {})
      const signing = sign(next())
      const witness = random() < WITNESS_SHARE ? backend.witnesses[round % backend.witnesses.length] : undefined
      await setTimeout(random() * 2_500)
      await Promise.all([backend.stopCoordinator('SIGKILL'), witness?.kill('SIGKILL')])
      await signing
      await witness?.start()
      kills += 1
      if ((round + 1) % 10 === 0) say(`${round + 1} random kills (${answers.size} answered)`)
    }
    await start(backend, {})
    // A client without an answer asks again; one with an answer must get the same.
    const all = Array.from({ length: nonce }, (_, each) => each)
    const until = performance.now() + (hasLog ? AGAIN_MS : 0)
    do {
      await sign(all)
    } while (all.some((each) => !answers.has(each)) && performance.now() < until)
    say(`waiting for ${answers.size} proofs`)
    const received = [...answers].map(([each, answer]) => ({ ...answer, digest: toDigest(createTx(each)), address }))
    const chainUrl = chain.url
    const audited = await auditBackend(backend, { chainUrl, contract, received })
    const missing = all.filter((each) => !answers.has(each))
    const unanswered = missing.map((each) => `nonce ${each} was never answered`)
    return { kills, answered: answers.size, changed, ...audited, lost: [...audited.lost, ...unanswered] }
  })
}

async function start(backend: Backend, changes: Record<string, string>): Promise<boolean> {
  try {
    await backend.startCoordinator(changes)
    if (backend.witnesses.length > 0) await backend.untilReady()
    return true
  } catch (error) {
    // Work that was left over can reach the point before the start is over.
    if (changes.CRASH_AT !== undefined) return false
    throw error
  }
}

async function ask(user: TestUser, tx: TxMetadata): Promise<Answer | undefined> {
  try {
    const response = await user.sign(tx)
    return response.status === 200 ? ((await response.json()) as Answer) : undefined
  } catch {
    return undefined
  }
}

/** When every proof is terminal or the time is over. The coordinator is its own IPFS gateway. */
async function auditBackend(
  backend: Backend,
  outside: { chainUrl: string; contract: string; received: readonly ReceivedSignature[] },
): Promise<Audit> {
  const { url, satellite } = backend
  const slugs = outside.received.map(({ slug }) => slug)
  const read = await waitForProofs({ url, slugs, timeoutMs: SETTLE_MS })
  const seen = new Map(read.flatMap(({ slug, proof }) => (proof === undefined ? [] : [[slug, proof] as const])))
  const anchors = await readAnchors({ url, enclave: backend.enclaveFields(), satellite })
  const where = { ...outside, url, ipfsUrl: url }
  return audit({ ...where, seen, verifyTransaction: createVerifyTransaction({ ...where, anchors }) })
}
