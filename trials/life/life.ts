import { hash } from 'node:crypto'
import {
  type AttestationPublished,
  type Hex,
  isProofTransition,
  isTerminalProofStatus,
  type ProofStatus,
  proofStatuses,
} from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import { type FakeChain, type FakeChainFault, startFakeChain } from '@countersign/testing'
import fc from 'fast-check'
import { sql } from 'kysely'
import { type Chain, ChainError } from '../../services/coordinator/src/chain/chain.ts'
import { createViemChain } from '../../services/coordinator/src/chain/viemChain.ts'
import {
  assertBlock,
  type Block,
  PinError,
  type PinErrorCode,
  type Pinner,
} from '../../services/coordinator/src/ipfs/pinner.ts'
import { confirmPublications, createSightings } from '../../services/coordinator/src/pipeline/confirm.ts'
import { createPinStage } from '../../services/coordinator/src/pipeline/pin.ts'
import { publishDue } from '../../services/coordinator/src/pipeline/publish.ts'
import { createFakeClock } from '../../services/coordinator/src/ports.fake.ts'
import type { Clock } from '../../services/coordinator/src/ports.ts'
import { CONFIRM_QUEUE, PIN_QUEUE, PUBLISH_QUEUE, type QueueName } from '../../services/coordinator/src/store/jobs.ts'
import { createPinningStore, type PinningStore } from '../../services/coordinator/src/store/pinning.ts'
import { createPublicationStore, type PublicationStore } from '../../services/coordinator/src/store/publications.ts'
import {
  createTestBatch,
  createTestSigning,
  createTestWallet,
  startTestStore,
  type TestStore,
} from '../../services/coordinator/src/store/store.fake.ts'
import { enqueueMissing } from '../../services/coordinator/src/store/sweep.ts'
import type { SigningBatch, Wallet } from '../../services/coordinator/src/store/types.ts'

/* The life of proofs as a model: commands of the world and of the workers, and what must hold after each of them. */

const stages = [PIN_QUEUE, PUBLISH_QUEUE, CONFIRM_QUEUE] as const

/** How the pin service fails one call: before it does anything, or (`late`) after it did what it was asked. */
type PinFault = { at: number; code: PinErrorCode | 'other_bytes' | 'forgets' | 'unknown' | 'silent'; isLate: boolean }

/** The process dies at the nth call to the outside: before the call has any effect, or after it and before the answer. */
type CrashPoint = { at: number; when: 'before' | 'after' }

/** A worker of one of two processes takes a job. */
type StageRun = {
  stage: QueueName
  process: 0 | 1
  /** Which proofs, and how many, for a pin. */
  pick: number
  pins: number
  /** A pin that nobody asked for: such as of a job that was handed out twice. */
  isExtra: boolean
  pinFault: PinFault | undefined
  crash: CrashPoint | undefined
  /** What becomes of a job whose worker failed: tried again, or given up. */
  fate: 'retried' | 'lost'
}

type WorldCommand =
  | { do: 'mine'; blocks: number }
  | { do: 'reorg'; depth: number; keep: 'all' | 'none' }
  | { do: 'drop'; pick: number }
  /** A process that was frozen at any time wakes up, and sends what it had stored. */
  | { do: 'send again'; pick: number }
  | { do: 'hold'; isHeld: boolean }
  | { do: 'set fee'; gwei: number }
  | { do: 'wait'; ms: number }
  | { do: 'revert'; pick: number; isOn: boolean }
  /** Somebody else uses the publisher's key. */
  | { do: 'use nonce' }

export type LifeCommand =
  /** What any command shrinks to. */
  | { do: 'nothing' }
  | { do: 'sign'; count: number; wallet: number; isAgain: boolean }
  | {
      do: 'run'
      run: StageRun
      fault: { name: FakeChainFault; count: number; methods?: readonly string[] } | undefined
    }
  /** Two workers and the world take turns, call by call. */
  | { do: 'race'; runs: [StageRun, StageRun]; world: WorldCommand[]; turns: number[] }
  /** The pin service is down for many attempts of every proof that waits. */
  | { do: 'pin outage'; code: PinErrorCode; attempts: number }
  | { do: 'sweep' }
  | WorldCommand

const PIN_DEADLINE_MS = 3_600_000
const PUBLISH_DEADLINE_MS = 7_200_000
const CONFIRMATIONS = 3
const FINALITY = 8
/** Not beyond what is final. */
const MAX_REORG = 5
/** The grace of the sweep, in which a proof has its job for certain. */
const GRACE_MS = 10_000
const MAX_ROUNDS = 150
/** Of the clock on the wall, which decides only how long a pin service that says nothing is listened to. */
const SILENCE_MS = 5
const GWEI = 10n ** 9n
/** The market asks for more than the adapter ever bids. */
const TOO_DEAR_GWEI = 6_000

/** Hardhat's first account, known to everybody. */
const publisherKey = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
const publisher = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'

const pick = fc.nat({ max: 20 })
const pinCodes = ['pin_unavailable', 'pin_refused', 'pin_mismatch', 'pin_not_found'] as const
/** Most of the time: nothing of the kind. */
const seldom = <T>(arbitrary: fc.Arbitrary<T>, weight = 1) =>
  fc.oneof({ arbitrary: fc.constant(undefined), weight: 3 }, { arbitrary, weight })

function createRuns(limits: { pins: number }): fc.Arbitrary<StageRun> {
  return fc.record({
    stage: fc.constantFrom(...stages),
    process: fc.constantFrom(0, 1),
    pick,
    pins: fc.integer({ min: 1, max: limits.pins }),
    isExtra: fc.oneof({ arbitrary: fc.constant(false), weight: 5 }, { arbitrary: fc.constant(true), weight: 1 }),
    pinFault: seldom(
      fc.record({
        at: fc.integer({ min: 1, max: 6 }),
        code: fc.constantFrom(...pinCodes, 'other_bytes', 'forgets', 'unknown', 'silent'),
        isLate: fc.boolean(),
      }),
    ),
    crash: seldom(
      fc.record({ at: fc.integer({ min: 1, max: 16 }), when: fc.constantFrom('before' as const, 'after' as const) }),
    ),
    fate: fc.constantFrom('retried', 'lost'),
  })
}

const chainFaults: fc.Arbitrary<{ name: FakeChainFault; count: number; methods?: readonly string[] }> = fc.oneof(
  fc.record({
    name: fc.constantFrom<FakeChainFault>('down', 'error', 'garbage', 'truncated'),
    count: fc.constantFrom(1, 2, 1_000),
    methods: fc.constantFrom(
      ['eth_chainId'],
      ['eth_estimateGas'],
      ['eth_getTransactionCount'],
      ['eth_sendRawTransaction'],
      ['eth_getTransactionReceipt'],
      ['eth_getBlockByNumber'],
    ),
  }),
  fc.record({
    name: fc.constantFrom<FakeChainFault>('down', 'reset-after-accept', 'wrong-hash', 'no-receipts', 'lies-mined'),
    count: fc.constantFrom(1, 2, 1_000),
  }),
)

const worldCommands: fc.Arbitrary<WorldCommand> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('mine'), blocks: fc.nat({ max: 3 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('reorg'),
      depth: fc.integer({ min: 1, max: MAX_REORG }),
      keep: fc.constantFrom('all', 'none'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('drop'), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('send again'), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('hold'), isHeld: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('set fee'), gwei: fc.constantFrom(1, 4, 100, TOO_DEAR_GWEI) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('wait'), ms: fc.constantFrom(1_000, 15_000, 61_000, 600_000) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('wait'),
      ms: fc.constantFrom(PIN_DEADLINE_MS, PUBLISH_DEADLINE_MS, PUBLISH_DEADLINE_MS + 1),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('revert'), pick, isOn: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('use nonce') }) },
)

const signs = fc.record({
  do: fc.constant('sign' as const),
  count: fc.integer({ min: 1, max: 4 }),
  wallet: fc.nat({ max: 1 }),
  isAgain: fc.oneof({ arbitrary: fc.constant(false), weight: 3 }, { arbitrary: fc.constant(true), weight: 1 }),
})
const runs = fc.record({
  do: fc.constant('run' as const),
  run: createRuns({ pins: 4 }),
  fault: seldom(chainFaults),
})
const races = fc.record({
  do: fc.constant('race' as const),
  // One call of each at a time is what taking turns is about.
  runs: fc.tuple(createRuns({ pins: 1 }), createRuns({ pins: 1 })),
  world: fc.array(worldCommands, { maxLength: 3 }),
  turns: fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 24 }),
})

/** Sequences of so many commands. Each shrinks to `nothing`, so that few are left of one that fails. */
export function createLifeCommands(length: number): fc.Arbitrary<LifeCommand[]> {
  const command: fc.Arbitrary<LifeCommand> = fc.oneof(
    { withCrossShrink: true },
    { weight: 1, arbitrary: fc.constant<LifeCommand>({ do: 'nothing' }) },
    { weight: 14, arbitrary: signs },
    { weight: 60, arbitrary: runs },
    { weight: 15, arbitrary: races },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('pin outage' as const),
        code: fc.constantFrom(...pinCodes),
        attempts: fc.constantFrom(2, 12),
      }),
    },
    { weight: 5, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
    { weight: 54, arbitrary: worldCommands },
  )
  return fc.array(command, { minLength: length, maxLength: length, size: 'max' })
}

/** What is left of a sequence when everything that does nothing is taken out. */
export function describeLife(commands: readonly LifeCommand[]): string {
  const lines = commands.filter((command) => command.do !== 'nothing').map((command) => fc.stringify(command))
  return lines.join('\n')
}

/** How often each kind of command was run, and how proofs and publications ended. */
export type LifeCounts = Record<string, number>

export type Life = {
  /** Runs one sequence on empty tables and a chain of its own, and heals it. Throws where an invariant does not hold. */
  run(commands: readonly LifeCommand[], counts?: LifeCounts): Promise<void>
  stop(): Promise<void>
}

/** A database in memory for any number of sequences, one after the other. */
export async function openLife(): Promise<Life> {
  const subject = await startTestStore('pglite')
  const wallets = [await createTestWallet(subject.store), await createTestWallet(subject.store)]
  const batches = ['{"collateral":1}', '{"collateral":2}'].map((collateral, sequence) =>
    createTestBatch({ sequence, quote: Buffer.alloc(64, sequence), collateral: Buffer.from(collateral) }),
  )
  return {
    async run(commands, counts = {}) {
      const { db } = subject.database
      await sql`truncate attestations, pending_transactions, publication_transactions, publications, verifications, batches`.execute(
        db,
      )
      await sql`delete from pgboss.job`.execute(db)
      const clock = createFakeClock()
      const node = await startFakeChain({ now: clock.now, finalityDepth: FINALITY })
      try {
        node.mine(FINALITY)
        await runSequence({ subject, wallets, batches, node, clock, counts }, commands)
      } finally {
        await node.stop()
      }
    },
    stop: () => subject.stop(),
  }
}

type Scene = {
  subject: TestStore
  wallets: readonly Wallet[]
  batches: readonly SigningBatch[]
  node: FakeChain
  clock: ReturnType<typeof createFakeClock>
  counts: LifeCounts
}

type Proof = {
  slug: string
  walletId: string
  wallet: Hex
  digest: Hex
  txHash: Hex
  status: ProofStatus
  failure: string | null
  cid: string | null
  /** Of the receipt. */
  receiptHash: string | null
  onchain: string | null
  publicationId: number | null
  attempts: number
  createdAt: number
  pinnedAt: number | null
}
type Publication = { id: number; nonce: number; status: string; createdAt: number }
type Job = { id: string; queue: QueueName; slug: string | null }
type Snapshot = { proofs: Proof[]; publications: Publication[]; jobs: Job[] }
type Gate = <Result>(call: () => Promise<Result>) => Promise<Result>

class Crash extends Error {}

/** What the specification promises does not hold. */
class BrokenLifeError extends Error {
  override name = 'BrokenLifeError'
}

function assert(condition: boolean, rule: string, details?: unknown): asserts condition {
  if (!condition) throw new BrokenLifeError(details === undefined ? rule : `${rule}: ${fc.stringify(details)}`)
}

async function runSequence(scene: Scene, commands: readonly LifeCommand[]): Promise<void> {
  const { subject, wallets, batches, node, clock, counts } = scene
  const { store, jobs } = subject
  const { db } = subject.database
  const service = createMemoryPinner()
  const chain = createViemChain({
    rpcUrl: node.url,
    chainId: node.chainId,
    contract: node.contract,
    privateKey: publisherKey,
  })
  const outside = {
    chain,
    pinner: service.pinner,
    pinning: createPinningStore({ db, jobs }),
    publications: createPublicationStore({ db, jobs }),
    insertJobs: (queue: QueueName, data: readonly object[]) =>
      db.transaction().execute((transaction) =>
        jobs.insert(
          transaction,
          queue,
          data.map((item) => ({ data: item })),
        ),
      ),
  }
  const processes = [createProcess(outside, clock), createProcess(outside, clock)]

  // What the model knows: what was signed, and what may keep it from becoming complete.
  const signings = new Map<string, { slug: string; collateral: string }>()
  const mayRevert = new Set<string>()
  const reverting = new Set<string>()
  /** Had an event at some time. The contract has no second thoughts: such a call does not begin to revert. */
  const wasPublished = new Set<string>()
  /** Jobs that were given up since the last sweep. */
  const lost = { pins: new Set<string>(), [PUBLISH_QUEUE]: false, [CONFIRM_QUEUE]: false }
  let feeGwei = 1
  /** The newest block that may have cost too much. */
  let dearBlock = -1
  let hadDeepReorg = false
  let seen: Snapshot = { proofs: [], publications: [], jobs: [] }

  node.revertFor((event) => reverting.has(toKey(event)) && !wasPublished.has(toKey(event)))

  function add(what: string) {
    counts[what] = (counts[what] ?? 0) + 1
  }

  async function sign({ count, wallet: index, isAgain }: { count: number; wallet: number; isAgain: boolean }) {
    const wallet = wallets[index] as Wallet
    const batch = batches[count % 2] as SigningBatch
    // Those of the other wallet are new to this one.
    const earlier = isAgain ? seen.proofs.slice(-count).map(({ digest }) => digest) : []
    const news = Array.from({ length: count }, (_, position) => createTestSigning(wallet, earlier[position]))
    const answers = await store.insertSignings({ batch, signings: news, now: clock.now() })
    const digests = new Set(news.map(({ statement }) => statement.digest))
    assert(answers.length === digests.size, 'every digest is answered once')
    for (const { digest } of answers) assert(digests.has(digest), 'nothing else is answered', digest)
    for (const { digest, slug } of answers) {
      const key = `${wallet.id}/${digest}`
      const known = signings.get(key) ?? { slug, collateral: toCid(new Uint8Array(batch.collateral)) }
      assert(known.slug === slug, 'I2: a digest that was signed before has its proof')
      signings.set(key, known)
    }
  }

  function takeJobs(run: StageRun): Job[] {
    const waiting = seen.jobs.filter(({ queue }) => queue === run.stage)
    if (run.stage !== PIN_QUEUE) return waiting.slice(0, 1)
    if (run.isExtra || waiting.length === 0) return []
    const order = seen.proofs.map(({ slug }) => slug)
    waiting.sort((left, right) => order.indexOf(left.slug ?? '') - order.indexOf(right.slug ?? ''))
    const first = run.pick % waiting.length
    return [...waiting.slice(first), ...waiting.slice(0, first)].slice(0, run.pins)
  }

  /** As pg-boss and the worker do. Answers what the stage threw. */
  async function runStage(run: StageRun, turn: Gate = (call) => call()): Promise<ChainError | Crash | undefined> {
    const taken = takeJobs(run)
    const ids = taken.map(({ id }) => id)
    seen.jobs = seen.jobs.filter(({ id }) => !ids.includes(id))
    await deleteJobs(subject, ids)
    const own = processes[run.process] as Process
    const crash = createCrash(run.crash)
    own.setGate((call) => turn(() => crash(call)))
    service.setFault(run.pinFault)
    try {
      if (run.stage === PIN_QUEUE) {
        const extra = run.isExtra ? seen.proofs[run.pick % Math.max(1, seen.proofs.length)]?.slug : undefined
        const slugs = extra === undefined ? taken.flatMap(({ slug }) => slug ?? []) : [extra]
        await own.pin(slugs)
      } else {
        await (run.stage === PUBLISH_QUEUE ? own.publish() : own.confirm())
      }
      return undefined
    } catch (error) {
      if (!(error instanceof Crash) && !(error instanceof ChainError)) throw error
      if (error instanceof Crash) processes[run.process] = createProcess(outside, clock)
      if (run.fate === 'retried') {
        await outside.insertJobs(
          run.stage,
          taken.map(({ slug }) => (slug === null ? {} : { slug })),
        )
      } else if (run.stage === PIN_QUEUE) {
        for (const { slug } of taken) if (slug !== null) lost.pins.add(slug)
      } else if (taken.length > 0) {
        lost[run.stage] = true
      }
      return error
    } finally {
      service.setFault(undefined)
    }
  }

  function rememberEvents() {
    for (const event of node.events()) wasPublished.add(toKey(event))
  }

  function setFee(gwei: number) {
    if (feeGwei === TOO_DEAR_GWEI) dearBlock = node.head.number
    feeGwei = gwei
    node.setBaseFee(BigInt(gwei) * GWEI)
  }

  async function actOnWorld(command: WorldCommand): Promise<void> {
    switch (command.do) {
      case 'mine':
        return node.mine(command.blocks)
      case 'reorg': {
        rememberEvents()
        const depth = Math.min(command.depth, node.head.number)
        if (depth >= CONFIRMATIONS) hadDeepReorg = true
        return node.reorg(depth, { keep: command.keep })
      }
      case 'drop': {
        const waiting = node.mempool()
        const hash = waiting[command.pick % Math.max(1, waiting.length)]?.hash
        if (hash !== undefined) node.dropTransaction(hash)
        return
      }
      case 'send again': {
        const raws = await readStoredTransactions(subject)
        const raw = raws[command.pick % Math.max(1, raws.length)]
        if (raw !== undefined) await chain.send(raw).catch(orChainError)
        return
      }
      case 'hold':
        return node.holdMempool(command.isHeld)
      case 'set fee':
        return setFee(command.gwei)
      case 'wait':
        return clock.advance(command.ms)
      case 'revert': {
        rememberEvents()
        const proof = seen.proofs[command.pick % Math.max(1, seen.proofs.length)]
        if (proof === undefined) return
        if (!command.isOn) return void reverting.delete(toKey(proof))
        mayRevert.add(proof.slug)
        return void reverting.add(toKey(proof))
      }
      case 'use nonce': {
        const nonce = node.transactions().filter(({ from }) => from === publisher).length
        const { publications } = await readSnapshot(subject)
        // Nothing can bring an event back whose nonce was taken after the proof was complete.
        if (publications.some((item) => item.nonce === nonce && item.status === 'confirmed')) return
        await node.sendFromElsewhere({ privateKey: publisherKey })
      }
    }
  }

  async function race({ runs: [left, right], world, turns: order }: Extract<LifeCommand, { do: 'race' }>) {
    const turns = createTurns(3, order)
    const parties = [
      (gate: Gate) => runStage({ ...left, process: 0, pinFault: undefined }, gate),
      (gate: Gate) => runStage({ ...right, process: 1, pinFault: undefined }, gate),
      async (gate: Gate) => {
        for (const command of world) await gate(() => actOnWorld(command))
      },
    ]
    const outcomes = await Promise.allSettled(
      parties.map((party, index) => party(turns.gateOf(index)).finally(turns.leave)),
    )
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
  }

  async function runOutage({ code, attempts }: { code: PinErrorCode; attempts: number }) {
    const run: StageRun = { ...plainRun, stage: PIN_QUEUE, pins: 100 }
    for (let attempt = 0; attempt < attempts; attempt++) {
      // Each of them fails at its first call.
      service.setOutage(code)
      await runStage(run)
      service.setOutage(undefined)
      seen = await readSnapshot(subject)
    }
  }

  async function sweep() {
    await enqueueMissing({ db, jobs }, { now: clock.now() })
    lost[PUBLISH_QUEUE] = false
    lost[CONFIRM_QUEUE] = false
    for (const { slug, createdAt } of seen.proofs) if (createdAt < clock.now() - GRACE_MS) lost.pins.delete(slug)
  }

  async function act(command: LifeCommand): Promise<void> {
    switch (command.do) {
      case 'nothing':
        return
      case 'sign':
        return sign(command)
      case 'run': {
        if (command.fault !== undefined) node.setFault(command.fault.name, command.fault)
        const error = await runStage(command.run)
        node.setFault()
        const isDear = feeGwei === TOO_DEAR_GWEI || node.head.number <= dearBlock
        const isExcused = command.fault !== undefined || error instanceof Crash || isDear
        assert(error === undefined || isExcused, 'a stage whose world is in order does not fail', error)
        return
      }
      case 'race':
        return race(command)
      case 'pin outage':
        return runOutage(command)
      case 'sweep':
        return sweep()
      default:
        return actOnWorld(command)
    }
  }

  async function check(command?: LifeCommand) {
    const before = new Map(seen.proofs.map((proof) => [proof.slug, proof]))
    if (command === undefined || isOfDatabase(command)) seen = await readSnapshot(subject)
    const mayTakeTwoSteps = command?.do === 'race'
    const events = node.events()
    const eventsByKey = new Map(events.map((event) => [toKey(event), event]))
    assert(eventsByKey.size === events.length, 'I5: one event at most for each wallet and transaction', events)
    const pairs = new Set(seen.proofs.map(({ walletId, digest }) => `${walletId}/${digest}`))
    assert(pairs.size === seen.proofs.length, 'I2: one proof for each wallet and digest')
    assert(pairs.size === signings.size, 'I2: every signing has its proof, and nothing else has')
    for (const proof of seen.proofs) {
      const earlier = before.get(proof.slug)
      checkStep(earlier, proof, mayTakeTwoSteps)
      if (proof.status === 'complete') {
        const event = eventsByKey.get(toKey(proof))
        assert(hadDeepReorg || event !== undefined, 'I4: what is complete has its event', proof)
        if (earlier?.status !== 'complete') {
          checkPinned(proof)
          const depth = event === undefined ? 0 : node.head.number - event.blockNumber + 1
          // In a race the chain may have moved on since.
          assert(mayTakeTwoSteps || depth >= CONFIRMATIONS, 'I4: it became complete deep enough', { proof, depth })
        }
      }
      checkJob(proof)
    }
    const isOpen = seen.publications.some(({ status }) => status === 'pending' || status === 'confirmed')
    assert(!isOpen || hasJob(CONFIRM_QUEUE) || lost[CONFIRM_QUEUE], 'I8: open publications have a job')
  }

  function checkStep(earlier: Proof | undefined, proof: Proof, mayTakeTwoSteps: boolean) {
    const { slug, status, receiptHash, cid } = proof
    assert(signings.get(`${proof.walletId}/${proof.digest}`)?.slug === slug, 'I2: the proof that was answered', proof)
    const from = earlier?.status ?? 'pending_pin'
    const isStep = from === status || isProofTransition(from, status)
    const isTwo = proofStatuses.some((middle) => isProofTransition(from, middle) && isProofTransition(middle, status))
    assert(isStep || (mayTakeTwoSteps && isTwo), 'I3: only allowed transitions', { earlier, proof })
    assert((earlier?.receiptHash ?? receiptHash) === receiptHash, 'I6: a receipt never changes', { earlier, proof })
    assert((earlier?.cid ?? cid) === cid, 'I6: a CID never changes', { earlier, proof })
    if (from !== status) checkReason(proof)
  }

  /** A proof fails only where the model knows why. */
  function checkReason(proof: Proof) {
    const { status, failure, slug, attempts, createdAt, pinnedAt, publicationId } = proof
    const now = clock.now()
    if (status === 'pin_failed') {
      assert(now - createdAt >= PIN_DEADLINE_MS && attempts >= 12, 'a pin fails only after its deadline', proof)
    }
    if (status !== 'onchain_failed') return
    const publication = seen.publications.find(({ id }) => id === publicationId)
    const reasons: Record<string, boolean> = {
      publish_deadline: pinnedAt !== null && now - pinnedAt > PUBLISH_DEADLINE_MS,
      publish_cancelled: publication !== undefined && now - publication.createdAt >= PUBLISH_DEADLINE_MS,
      publish_reverted: mayRevert.has(slug),
    }
    assert(reasons[failure ?? ''] === true, 'a publication fails only for a reason', { proof, publication, now })
  }

  function checkPinned({ walletId, digest, cid, receiptHash }: Proof) {
    const receipt = service.blocks.get(cid ?? '')
    assert(receipt !== undefined && toCid(receipt) === cid, 'I4: the receipt is there, under its CID', cid)
    assert(hash('sha256', receipt) === receiptHash, 'I4: the receipt is the stored one', cid)
    const collateral = signings.get(`${walletId}/${digest}`)?.collateral ?? ''
    const held = service.blocks.get(collateral)
    assert(held !== undefined && toCid(held) === collateral, 'I4: the collateral is there, under its CID', collateral)
    assert(Buffer.from(receipt).includes(collateral), 'I4: the receipt names the collateral', collateral)
  }

  const hasJob = (wanted: QueueName, slug?: string) =>
    seen.jobs.some((job) => job.queue === wanted && (slug === undefined || job.slug === slug))

  /** That of an open publication is looked for once for all. */
  function checkJob({ slug, status, publicationId }: Proof) {
    if (status === 'pending_pin') {
      assert(hasJob(PIN_QUEUE, slug) || lost.pins.has(slug), 'I8: a proof to be pinned has a job', slug)
    }
    if (status !== 'pending_onchain') return
    if (publicationId === null) {
      assert(hasJob(PUBLISH_QUEUE) || lost[PUBLISH_QUEUE], 'I8: a proof to be published has a job', slug)
      return
    }
    const publication = seen.publications.find(({ id }) => id === publicationId)
    assert(publication?.status === 'pending', 'I8: a published proof waits with its publication', publication)
  }

  /** Everything works again. Jobs alone must bring every proof to its end: one sweep finds those that were lost. */
  async function heal() {
    node.setFault()
    node.holdMempool(false)
    setFee(1)
    // Fees are those of the newest block.
    node.mine(1)
    clock.advance(GRACE_MS + 1)
    await sweep()
    await check()
    for (let round = 0; round < MAX_ROUNDS; round++) {
      for (const stage of stages) {
        if (!hasJob(stage)) continue
        const error = await runStage({ ...plainRun, stage, pins: 100 })
        assert(error === undefined, 'a stage whose world is in order does not fail', error)
        await check()
      }
      if (isOver(seen)) return
      node.mine(2)
      clock.advance(16_000)
    }
    assert(false, 'every proof comes to its end', { ...seen, mempool: node.mempool(), head: node.head })
  }

  function checkEnd() {
    const events = new Map(node.events().map((event) => [toKey(event), event]))
    for (const proof of seen.proofs) {
      assert(isTerminalProofStatus(proof.status), 'every proof comes to its end', proof)
      const event = events.get(toKey(proof))
      const isComplete = proof.status === 'complete'
      assert((event !== undefined) === isComplete, 'I4: what is complete has an event, and nothing else has', proof)
      add(isComplete ? 'proof: complete' : `proof: ${proof.status}, ${proof.failure}`)
      if (event === undefined) continue
      checkPinned(proof)
      assert(event.ipfsCid === proof.cid, 'I4: the event names the receipt', { proof, event })
      const place = `${event.transactionHash}/${event.blockNumber}`
      assert(place === proof.onchain, 'I4: the event is where the proof says', { proof, event })
    }
    for (const { status } of seen.publications) add(`publication: ${status}`)
  }

  for (const command of commands) {
    add(toKind(command))
    await act(command)
    await check(command)
  }
  await heal()
  checkEnd()
}

/** A worker with nothing in its way. */
export const plainRun: Omit<StageRun, 'stage'> = {
  process: 0,
  pick: 0,
  pins: 1,
  isExtra: false,
  pinFault: undefined,
  crash: undefined,
  fate: 'retried',
}

function toKind(command: LifeCommand): string {
  if (command.do === 'run') return `run ${command.run.stage}`
  if (command.do === 'race') return `race ${command.runs.map(({ stage }) => stage).join(' and ')}`
  return command.do
}

/** The others cannot have changed a row. */
function isOfDatabase({ do: kind }: LifeCommand): boolean {
  return ['sign', 'run', 'race', 'pin outage', 'sweep'].includes(kind)
}

function toKey({ wallet, txHash }: Pick<AttestationPublished, 'wallet' | 'txHash'>): string {
  return `${wallet}/${txHash}`.toLowerCase()
}

function isOver({ proofs, publications }: Snapshot): boolean {
  return (
    proofs.every(({ status }) => isTerminalProofStatus(status)) &&
    publications.every(({ status }) => status !== 'pending' && status !== 'confirmed')
  )
}

function orChainError(error: unknown): void {
  if (!(error instanceof ChainError)) throw error
}

type Outside = {
  chain: Chain
  pinner: Pick<Pinner, 'pin' | 'read'>
  pinning: PinningStore
  publications: PublicationStore
  insertJobs(queue: QueueName, data: readonly object[]): Promise<void>
}

type Process = ReturnType<typeof createProcess>

/** A worker's memory, and its three stages, whose every call to the outside goes through a gate. */
function createProcess(outside: Outside, clock: Clock) {
  let gate: Gate = (call) => call()
  const wrap = <Target extends object>(target: Target): Target =>
    new Proxy(target, {
      get(object, name) {
        const value = Reflect.get(object, name)
        if (typeof value !== 'function') return value
        return (...parameters: unknown[]) => gate(() => value.apply(object, parameters))
      },
    })
  const ignore = () => {}
  const log = { info: ignore, warn: ignore, error: ignore }
  const sightings = createSightings()
  const pinStage = createPinStage({
    store: wrap(outside.pinning),
    pinner: wrap(outside.pinner),
    clock,
    random: () => 0.5,
    log,
    pinDeadlineMs: PIN_DEADLINE_MS,
    timeoutMs: SILENCE_MS,
  })
  const deps = {
    store: wrap(outside.publications),
    chain: wrap(outside.chain),
    clock,
    log,
    publishDeadlineMs: PUBLISH_DEADLINE_MS,
  }
  return {
    setGate(next: Gate) {
      gate = next
    },
    /** All at once; over only when each of them is. */
    async pin(slugs: readonly string[]) {
      const outcomes = await Promise.allSettled(slugs.map((slug) => pinStage.pin(slug)))
      for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
    },
    async publish() {
      await publishDue(deps)
    },
    async confirm() {
      const { open } = await confirmPublications({ ...deps, confirmations: CONFIRMATIONS, sightings })
      if (open > 0) await gate(() => outside.insertJobs(CONFIRM_QUEUE, [{}]))
    },
  }
}

/** From the crash on, every call dies. */
function createCrash(point: CrashPoint | undefined): Gate {
  let calls = 0
  return async (call) => {
    calls += 1
    if (point === undefined || calls < point.at) return call()
    if (calls === point.at && point.when === 'after') await call()
    throw new Crash()
  }
}

/** One call at a time: when every party waits for its turn, the next number of the list says whose it is. */
function createTurns(parties: number, order: readonly number[]) {
  const waiting = new Map<number, () => void>()
  let live = parties
  let used = 0
  function next() {
    if (waiting.size === 0 || waiting.size < live) return
    const candidates = [...waiting.keys()].sort()
    const chosen = candidates[(order[used % order.length] ?? 0) % candidates.length] ?? 0
    used += 1
    const resume = waiting.get(chosen)
    waiting.delete(chosen)
    resume?.()
  }
  return {
    gateOf:
      (party: number): Gate =>
      async (call) => {
        await new Promise<void>((resolve) => {
          waiting.set(party, resolve)
          next()
        })
        return call()
      },
    leave() {
      live -= 1
      next()
    },
  }
}

/** Blocks in memory, and every failure that the port knows. */
function createMemoryPinner() {
  const blocks = new Map<string, Block['bytes']>()
  let fault: PinFault | undefined
  let outage: PinErrorCode | undefined
  let calls = 0

  async function answer<Result>(signal: AbortSignal, work: () => Result, forgotten: () => Result): Promise<Result> {
    calls += 1
    if (outage !== undefined) throw new PinError(outage)
    if (fault?.at !== calls) return work()
    if (fault.code === 'forgets') return forgotten()
    if (fault.isLate) work()
    if (fault.code === 'silent') {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      throw new PinError('pin_unavailable')
    }
    if (fault.code === 'unknown') throw new TypeError('a fault of the adapter')
    if (fault.code !== 'other_bytes') throw new PinError(fault.code)
    const result = work()
    return (result instanceof Uint8Array ? new Uint8Array(result.length) : result) as Result
  }

  const throwNotFound = () => {
    throw new PinError('pin_not_found')
  }
  const pinner: Pick<Pinner, 'pin' | 'read'> = {
    pin: (block, { signal }) =>
      answer(
        signal,
        () => {
          assertBlock(block)
          blocks.set(block.cid, block.bytes)
        },
        // It says that it holds the block, and does not.
        () => {},
      ),
    read: (cid, { signal }) => answer(signal, () => blocks.get(cid) ?? throwNotFound(), throwNotFound),
  }
  return {
    pinner,
    blocks,
    setFault(next: PinFault | undefined) {
      fault = next
      calls = 0
    },
    setOutage(next: PinErrorCode | undefined) {
      outage = next
    },
  }
}

async function readSnapshot({ database: { db } }: TestStore): Promise<Snapshot> {
  const { rows } = await sql<{ snapshot: Snapshot }>`
    select json_build_object(
      'proofs', coalesce((
        select json_agg(json_build_object(
          'slug', a.slug, 'walletId', p.wallet_id, 'wallet', '0x' || encode(w.address, 'hex'),
          'digest', '0x' || encode(p.digest, 'hex'), 'txHash', '0x' || encode(p.tx_hash, 'hex'),
          'status', a.status, 'failure', a.failure, 'cid', a.ipfs_cid,
          'receiptHash', encode(sha256(a.receipt_bytes), 'hex'),
          'onchain', '0x' || encode(a.onchain_tx_hash, 'hex') || '/' || a.onchain_block_number,
          'publicationId', a.publication_id, 'attempts', a.pin_attempts,
          'createdAt', (extract(epoch from a.created_at) * 1000)::bigint,
          'pinnedAt', (extract(epoch from a.pinned_at) * 1000)::bigint
        ) order by a.pending_transaction_id)
        from attestations as a join pending_transactions as p on p.id = a.pending_transaction_id
          join wallets as w on w.id = p.wallet_id
      ), '[]'),
      'publications', coalesce((
        select json_agg(json_build_object('id', id, 'nonce', nonce, 'status', status,
          'createdAt', (extract(epoch from created_at) * 1000)::bigint) order by id)
        from publications
      ), '[]'),
      'jobs', coalesce((
        select json_agg(json_build_object('id', id, 'queue', name, 'slug', data ->> 'slug') order by created_on, id)
        from pgboss.job where state < 'active'
      ), '[]')
    ) as snapshot`.execute(db)
  const snapshot = rows[0]?.snapshot
  assert(snapshot !== undefined, 'there is a snapshot')
  return snapshot
}

async function deleteJobs({ database: { db } }: TestStore, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await sql`delete from pgboss.job where id = any(${ids}::uuid[])`.execute(db)
}

async function readStoredTransactions({ database: { db } }: TestStore): Promise<Hex[]> {
  const { rows } = await sql<{ raw: Hex }>`
    select '0x' || encode(raw, 'hex') as raw from publication_transactions
    order by publication_id, max_fee_per_gas`.execute(db)
  return rows.map(({ raw }) => raw)
}
