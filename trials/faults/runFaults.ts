import { vendorRoots } from '@countersign/attestation'
import { simulatedRoots } from '@countersign/attestation/simulator'
import type { Hex, TxMetadata } from '@countersign/protocol'
import { checkReceipt, parseReceipt } from '@countersign/receipt'
import { createRandom, within } from '@countersign/testing'
import { createTx, createUser, startBackend, toDigest } from '../../services/coordinator/test/backend.ts'
import { startContract } from '../../services/coordinator/test/contract.ts'
import type { CrashPointName } from '../../services/coordinator/test/crashPoints.ts'
import { readEvents } from '../../services/coordinator/test/events.ts'

export type FaultsParameters = {
  kind: 'pglite' | 'postgres'
  /** Where the coordinator is killed, one after the other. */
  points: readonly CrashPointName[]
  /** Kills at a random moment, after the points. */
  randomKills: number
  seed: number
  say(line: string): void
}

export type FaultsReport = {
  kills: number
  /** Signatures that a client received. */
  answered: number
  /** Proofs that are not complete, or whose receipt or event is not there. */
  lost: string[]
  /** Transactions with more than one event. */
  duplicated: string[]
  /** Receipts that do not verify. */
  invalid: string[]
  /** Digests for which a client received two different answers. */
  changed: string[]
}

type Answer = { signature: Hex; slug: string }
type Backend = Awaited<ReturnType<typeof startBackend>>

const SIGNINGS = 3
/** A crash point that is not reached in this time is a fault of the test. */
const REACH_MS = 60_000
const SETTLE_MS = 120_000

/**
 * Kills the coordinator, with its worker, again and again while signings arrive, on a real database, chain and IPFS node; then lets
 * it run, and audits from the outside what clients were told.
 */
export async function runFaults(parameters: FaultsParameters): Promise<FaultsReport> {
  const { kind, points, randomKills, say } = parameters
  const { chain, address: contract, env } = await startContract()
  const backend = await startBackend({ kind, env })
  const random = createRandom(parameters.seed)
  const answers = new Map<number, Answer>()
  const changed: string[] = []
  let nonce = 0
  let kills = 0
  try {
    const user = createUser(backend)
    await user.signIn('alice')

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
      await within(REACH_MS, backend.coordinatorEnded(), `“${point}” was not reached`)
      await signing
      kills += 1
      say(`killed ${point} (${kind}, ${answers.size} answered)`)
    }
    for (let round = 0; round < randomKills; round++) {
      await start(backend, {})
      const signing = sign(next())
      await new Promise((resolve) => setTimeout(resolve, random() * 2_500))
      await backend.stopCoordinator('SIGKILL')
      await signing
      kills += 1
      if ((round + 1) % 10 === 0) say(`${round + 1} random kills (${kind}, ${answers.size} answered)`)
    }
    await start(backend, {})
    // Whoever got no answer asks again; whoever got one gets the same.
    await sign(Array.from({ length: nonce }, (_, each) => each))
    say(`waiting for ${answers.size} proofs (${kind})`)
    const audited = await audit({ backend, chainUrl: chain.url, contract, answers: [...answers.values()] })
    const missing = Array.from({ length: nonce }, (_, each) => each).filter((each) => !answers.has(each))
    const unanswered = missing.map((each) => `nonce ${each} was never answered`)
    return { kills, answered: answers.size, changed, ...audited, lost: [...audited.lost, ...unanswered] }
  } finally {
    await backend.stop()
    await chain.stop()
  }
}

async function start(backend: Backend, changes: Record<string, string>): Promise<boolean> {
  try {
    await backend.startCoordinator(changes)
    return true
  } catch (error) {
    // Work that was left over can reach the point before the start is over.
    if (changes.CRASH_AT !== undefined) return false
    throw error
  }
}

async function ask(user: ReturnType<typeof createUser>, tx: TxMetadata): Promise<Answer | undefined> {
  try {
    const response = await user.sign(tx)
    return response.status === 200 ? ((await response.json()) as Answer) : undefined
  } catch {
    return undefined
  }
}

async function audit(parameters: { backend: Backend; chainUrl: string; contract: string; answers: readonly Answer[] }) {
  const { backend, chainUrl, contract, answers } = parameters
  const lost: string[] = []
  const invalid: string[] = []
  const proofs: { slug: string; txHash: string; ipfsCid: string }[] = []
  const until = Date.now() + SETTLE_MS
  for (const { slug } of answers) {
    for (;;) {
      const response = await fetch(`${backend.url}/proof/${slug}`)
      const proof = (await response.json()) as { status: string; txHash: string; ipfsCid: string }
      if (proof.status === 'complete') {
        proofs.push({ slug, txHash: proof.txHash, ipfsCid: proof.ipfsCid })
        break
      }
      if (response.status !== 200 || proof.status.endsWith('_failed') || Date.now() > until) {
        lost.push(`${slug} is ${response.status === 200 ? proof.status : response.status}`)
        break
      }
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
  const events = await readEvents({ url: chainUrl, contract })
  const counts = new Map<string, number>()
  for (const { txHash, ipfsCid } of events)
    counts.set(`${txHash} ${ipfsCid}`, (counts.get(`${txHash} ${ipfsCid}`) ?? 0) + 1)
  const byHash = new Map<string, number>()
  for (const { txHash } of events) byHash.set(txHash, (byHash.get(txHash) ?? 0) + 1)
  const duplicated = [...byHash].filter(([, count]) => count > 1).map(([txHash]) => txHash)
  for (const { slug, txHash, ipfsCid } of proofs) {
    if (counts.get(`${txHash} ${ipfsCid}`) === undefined) lost.push(`${slug} has no event`)
    const fault = await verify(backend, ipfsCid).catch((error: Error) => error.message)
    if (fault !== undefined) invalid.push(`${slug}: ${fault}`)
  }
  return { lost, duplicated, invalid }
}

/** As a stranger: bytes by CID, and the same code as in the verifier. */
async function verify(backend: Backend, cid: string): Promise<string | undefined> {
  const getBlock = async (each: string) => {
    const response = await fetch(`${backend.url}/ipfs/${each}?format=raw`)
    if (response.status !== 200) throw new Error(`${each} is not there`)
    return new Uint8Array(await response.arrayBuffer())
  }
  const bytes = await getBlock(cid)
  const collateral = await getBlock(parseReceipt(bytes).signer.collateral)
  const { verdict, steps } = await checkReceipt(bytes, collateral, {
    roots: [...vendorRoots, ...simulatedRoots()],
    mockEntropyKeys: [backend.satellite.publicKey],
    cid,
  })
  return verdict === 'mock' ? undefined : `${verdict}: ${steps.find(({ status }) => status === 'fail')?.id ?? ''}`
}
