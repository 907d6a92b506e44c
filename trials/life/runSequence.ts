import { type Hex, isTerminalProofStatus } from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import type { FakeChain } from '@countersign/testing'
import { ChainError } from '../../services/coordinator/src/publish/chain/chainError.ts'
import { createViemChain } from '../../services/coordinator/src/publish/chain/viemChain.ts'
import { PinError, type PinErrorCode } from '../../services/coordinator/src/publish/ipfs/pinError.ts'
import { createAnchorStore } from '../../services/coordinator/src/store/anchors.ts'
import type { SigningBatch } from '../../services/coordinator/src/store/batches.ts'
import { CONFIRM_QUEUE, PIN_QUEUE, PUBLISH_QUEUE, type QueueName } from '../../services/coordinator/src/store/jobs.ts'
import { createPinningStore } from '../../services/coordinator/src/store/pinning.ts'
import { createPublicationStore } from '../../services/coordinator/src/store/publications.ts'
import type { Signing } from '../../services/coordinator/src/store/signings.ts'
import { enqueueMissing } from '../../services/coordinator/src/store/sweep.ts'
import type { Wallet } from '../../services/coordinator/src/store/wallets.ts'
import type { createFakeClock } from '../../services/coordinator/test/ports.ts'
import { deleteJobs, type JobRow, readSnapshot, type Snapshot } from '../../services/coordinator/test/proofRows.ts'
import { createLogSigner, OWNER } from '../../services/coordinator/test/publish/loggedProofs.ts'
import { createTestLog } from '../../services/coordinator/test/store/logs.ts'
import { createTestSigning, type TestStore } from '../../services/coordinator/test/store/store.ts'
import { assertsPins } from './anchors.ts'
import {
  type LifeCommand,
  LOGS,
  type Mode,
  plainRun,
  type StageRun,
  stages,
  TOO_DEAR_GWEI,
  toKind,
} from './commands.ts'
import { Crash, createCrash, createTurns, type Gate } from './gates.ts'
import { createInvariants } from './invariants.ts'
import { createMemoryPinner, InjectedError } from './memoryPinner.ts'
import { assert, createModel } from './model.ts'
import { createWorkerProcess, type Outside, type WorkerProcess } from './workerProcess.ts'
import { createWorld, publisherKey } from './world.ts'

/** Number of commands of each kind, and of proofs and publications by outcome. */
export type LifeCounts = Record<string, number>

export type Scene = {
  subject: TestStore
  wallets: readonly Wallet[]
  batches: readonly SigningBatch[]
  node: FakeChain
  clock: ReturnType<typeof createFakeClock>
  counts: LifeCounts
  /** What workers publish first. Only with `checkpoints`, signatures have log entries. */
  form: Mode
}

/** Proofs younger than this are left to their jobs by the sweep. */
const GRACE_MS = 10_000
/** The most proofs in one anchor. */
const MAX_ANCHORED = 5
/** How long the second process waits for more proofs before it publishes a checkpoint. */
const DELAY_MS = 12_000
/** Covers more than the half hour after which a nonce counts as used by another sender. */
const MAX_ROUNDS = 300

/** Runs the commands, checks the invariants after each, and repairs all faults. Then every proof must become final. */
export async function runSequence(scene: Scene, commands: readonly LifeCommand[]): Promise<void> {
  const { subject, wallets, batches, node, clock, counts, form } = scene
  const { store, jobs } = subject
  const { db } = subject.database
  const service = createMemoryPinner()
  const { url: rpcUrl, chainId, contract } = node
  const chain = assertsPins(
    createViemChain({ rpcUrl, chainId, contract, privateKey: publisherKey }),
    node,
    service.blocks,
  )
  const logs = form === 'checkpoints' ? Array.from({ length: LOGS }, () => createTestLog()) : []
  const signer = createLogSigner(subject, clock)
  for (const log of logs) await signer.cosign(log)
  const outside: Outside = {
    chain,
    pinner: service.pinner,
    pinning: createPinningStore({ db, jobs }),
    publications: createPublicationStore({ db, jobs }),
    anchors: createAnchorStore({ db }, { maxAnchored: MAX_ANCHORED }),
    target: { contract: node.logWitness, owner: OWNER },
    insertJobs: (queue: QueueName, data: readonly object[]) =>
      db.transaction().execute((transaction) =>
        jobs.insert(
          transaction,
          queue,
          data.map((item) => ({ data: item })),
        ),
      ),
  }
  const modes: [Mode, Mode] = [form, form]
  const start = (place: 0 | 1) =>
    createWorkerProcess(outside, { clock, form, mode: modes[place], delayMs: place * DELAY_MS })
  const processes: [WorkerProcess, WorkerProcess] = [start(0), start(1)]

  const model = createModel()
  const world = createWorld({ subject, model, node, logs, chain, clock })
  const { blocks } = service
  const { check, checkEnd, hasJob } = createInvariants({ subject, model, node, clock, blocks, logs, count })

  function count(what: string) {
    counts[what] = (counts[what] ?? 0) + 1
  }

  /** The rows of signatures of these digests. Undefined: a new one. */
  async function createRows({ count: size, logged }: Sign, wallet: Wallet, digests: readonly (Hex | undefined)[]) {
    const log = logged && logs[logged.log]
    if (log !== undefined) return signer.sign({ wallet, log, digests, others: logged?.others ?? 0 })
    const signings = digests.map((digest) => createTestSigning(wallet, digest))
    return { batch: batches[size % 2] as SigningBatch, signings }
  }

  async function sign(command: Sign) {
    const { count: size, wallet: index, isAgain } = command
    const wallet = wallets[index] as Wallet
    // If they belong to the other wallet, they are new to this one.
    const earlier = isAgain ? model.seen.proofs.slice(-size).map(({ digest }) => digest) : []
    const asked = Array.from({ length: size }, (_, position) => earlier[position])
    const { batch, signings } = await createRows(command, wallet, asked)
    const answers = await store.insertSignings({ batch, signings, now: clock.now() })
    const digests = new Set<Hex | null>(signings.map(toDigest))
    assert(answers.length === digests.size, 'every digest has one answer')
    for (const { digest } of answers) assert(digest !== null && digests.has(digest), 'no other digest is answered')
    for (const { digest, slug } of answers) {
      const key = `${wallet.id}/${digest}`
      const known = model.signings.get(key) ?? { slug, collateral: toCid(new Uint8Array(batch.collateral)) }
      assert(known.slug === slug, 'I2: a repeated digest gets the same proof')
      model.signings.set(key, known)
    }
  }

  /** Splits pin jobs, so that a run takes any number of proofs, as if callers signed one at a time. */
  async function splitPins() {
    const shared = (await readSnapshot(subject)).jobs.filter(({ slugs }) => slugs.length > 1)
    await deleteJobs(
      subject,
      shared.map(({ id }) => id),
    )
    const slugs = shared.flatMap((job) => job.slugs)
    await outside.insertJobs(
      PIN_QUEUE,
      slugs.map((slug) => ({ slugs: [slug] })),
    )
  }

  function takeJobs(run: StageRun): JobRow[] {
    const waiting = model.seen.jobs.filter(({ queue }) => queue === run.stage)
    if (run.stage !== PIN_QUEUE) return waiting.slice(0, 1)
    if (run.isExtra || waiting.length === 0) return []
    const order = model.seen.proofs.map(({ slug }) => slug)
    waiting.sort((left, right) => order.indexOf(left.slugs[0] ?? '') - order.indexOf(right.slugs[0] ?? ''))
    const first = run.pick % waiting.length
    return [...waiting.slice(first), ...waiting.slice(0, first)].slice(0, run.pins)
  }

  /** Runs a job as pg-boss and the worker would. Returns the error of the stage. */
  async function runStage(run: StageRun, turn: Gate = (call) => call()): Promise<StageError | undefined> {
    const taken = takeJobs(run)
    const ids = taken.map(({ id }) => id)
    model.seen.jobs = model.seen.jobs.filter(({ id }) => !ids.includes(id))
    await deleteJobs(subject, ids)
    const own = processes[run.process]
    const crash = createCrash(run.crash)
    own.setGate((call) => turn(() => crash(call)))
    service.setFault(run.pinFault)
    try {
      if (run.stage === PIN_QUEUE) {
        const extra = run.isExtra
          ? model.seen.proofs[run.pick % Math.max(1, model.seen.proofs.length)]?.slug
          : undefined
        const slugs = extra === undefined ? taken.flatMap(({ slugs }) => slugs) : [extra]
        await own.pin(slugs)
      } else {
        await (run.stage === PUBLISH_QUEUE ? own.publish() : own.confirm())
      }
      return undefined
    } catch (error) {
      if (!isOfStage(error)) throw error
      if (error instanceof Crash) processes[run.process] = start(run.process)
      if (run.fate === 'retried') {
        await outside.insertJobs(
          run.stage,
          taken.map(({ slugs }) => (slugs.length === 0 ? {} : { slugs })),
        )
      } else if (run.stage === PIN_QUEUE) {
        for (const { slugs } of taken) for (const slug of slugs) model.lost.pins.add(slug)
      } else if (taken.length > 0) {
        model.lost[run.stage] = true
      }
      return error
    } finally {
      service.setFault(undefined)
    }
  }

  async function race({ runs: [left, right], world: commands, turns: order }: Extract<LifeCommand, { do: 'race' }>) {
    const turns = createTurns(3, order)
    const parties = [
      (gate: Gate) => runStage({ ...left, process: 0, pinFault: undefined }, gate),
      (gate: Gate) => runStage({ ...right, process: 1, pinFault: undefined }, gate),
      async (gate: Gate) => {
        for (const command of commands) await gate(() => world.act(command))
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
      // Each proof fails at its first call.
      service.setOutage(code)
      await runStage(run)
      service.setOutage(undefined)
      model.seen = await readSnapshot(subject)
    }
  }

  async function sweep() {
    await enqueueMissing({ db, jobs }, { now: clock.now() })
    model.lost[PUBLISH_QUEUE] = false
    model.lost[CONFIRM_QUEUE] = false
    for (const { slug, createdAt } of model.seen.proofs)
      if (createdAt < clock.now() - GRACE_MS) model.lost.pins.delete(slug)
  }

  async function act(command: LifeCommand): Promise<void> {
    switch (command.do) {
      case 'nothing':
        return
      case 'sign':
        await sign(command)
        return splitPins()
      case 'run': {
        if (command.fault !== undefined) node.setFault(command.fault.name, command.fault)
        const error = await runStage(command.run)
        node.setFault()
        const isDear = model.feeGwei === TOO_DEAR_GWEI || node.head.number <= model.dearBlock
        const isOfNode = command.fault !== undefined || isDear
        const isExcused =
          error instanceof ChainError ? isOfNode || isOfWorld(error) : command.run.pinFault !== undefined
        assert(error === undefined || error instanceof Crash || isExcused, "a stage without faults doesn't fail", error)
        return
      }
      case 'race':
        return race(command)
      case 'pin outage':
        return runOutage(command)
      case 'sweep':
        return sweep()
      case 'switch': {
        modes[command.process] = command.mode
        processes[command.process] = start(command.process)
        if (command.mode === 'events') model.hadEvents = true
        return
      }
      default:
        return world.act(command)
    }
  }

  function isOfWorld({ code }: ChainError): boolean {
    return (code === 'insufficient_funds' && model.isEmpty) || (code === 'log_not_registered' && model.rotated.size > 0)
  }

  /** Repairs all faults. One sweep restores lost jobs; from then on jobs must complete every proof. */
  async function heal() {
    node.setFault()
    world.heal()
    clock.advance(GRACE_MS + 1)
    await sweep()
    await check()
    for (let round = 0; round < MAX_ROUNDS; round++) {
      for (const stage of stages) {
        if (!hasJob(stage)) continue
        const error = await runStage({ ...plainRun, stage, pins: 100 })
        assert(error === undefined, "a stage without faults doesn't fail", error)
        await check()
      }
      if (isOver(model.seen)) return
      node.mine(2)
      clock.advance(16_000)
    }
    assert(false, 'every proof becomes final', { ...model.seen, mempool: node.mempool(), head: node.head })
  }

  for (const command of commands) {
    count(toKind(command))
    await act(command)
    await check(command)
  }
  await heal()
  await checkEnd()
}

type Sign = Extract<LifeCommand, { do: 'sign' }>

/** The digest of a signing of either version. */
function toDigest(signing: Signing): Hex | null {
  if (signing.version === 1) return signing.statement.digest
  return signing.signed.kind === 'authorization' ? signing.signed.subject.digest : null
}

/** Errors that the job queue retries. */
type StageError = ChainError | PinError | InjectedError | Crash

function isOfStage(error: unknown): error is StageError {
  return [ChainError, PinError, InjectedError, Crash].some((kind) => error instanceof kind)
}

function isOver({ proofs, publications }: Snapshot): boolean {
  return (
    proofs.every(({ status }) => isTerminalProofStatus(status)) &&
    publications.every(({ status }) => status !== 'pending' && status !== 'confirmed')
  )
}
