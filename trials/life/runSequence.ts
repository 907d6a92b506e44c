import { isTerminalProofStatus } from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import type { FakeChain } from '@countersign/testing'
import { ChainError } from '../../services/coordinator/src/publish/chain/chainError.ts'
import { createViemChain } from '../../services/coordinator/src/publish/chain/viemChain.ts'
import type { PinErrorCode } from '../../services/coordinator/src/publish/ipfs/pinError.ts'
import type { SigningBatch } from '../../services/coordinator/src/store/batches.ts'
import { CONFIRM_QUEUE, PIN_QUEUE, PUBLISH_QUEUE, type QueueName } from '../../services/coordinator/src/store/jobs.ts'
import { createPinningStore } from '../../services/coordinator/src/store/pinning.ts'
import { createPublicationStore } from '../../services/coordinator/src/store/publications.ts'
import { enqueueMissing } from '../../services/coordinator/src/store/sweep.ts'
import type { Wallet } from '../../services/coordinator/src/store/wallets.ts'
import type { createFakeClock } from '../../services/coordinator/test/ports.ts'
import { deleteJobs, type JobRow, readSnapshot, type Snapshot } from '../../services/coordinator/test/proofRows.ts'
import { createTestSigning, type TestStore } from '../../services/coordinator/test/store/store.ts'
import { type LifeCommand, plainRun, type StageRun, stages, TOO_DEAR_GWEI, toKind } from './commands.ts'
import { Crash, createCrash, createTurns, type Gate } from './gates.ts'
import { createInvariants } from './invariants.ts'
import { createMemoryPinner } from './memoryPinner.ts'
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
}

/** Proofs younger than this are left to their jobs by the sweep. */
const GRACE_MS = 10_000
/** Covers more than the half hour after which a nonce counts as used by another sender. */
const MAX_ROUNDS = 300

/** Runs the commands, checks the invariants after each, and repairs all faults. Then every proof must become final. */
export async function runSequence(scene: Scene, commands: readonly LifeCommand[]): Promise<void> {
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
  const outside: Outside = {
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
  const processes = [createWorkerProcess(outside, clock), createWorkerProcess(outside, clock)]

  const model = createModel()
  const world = createWorld({ subject, model, node, chain, clock })
  const { check, checkEnd, hasJob } = createInvariants({ subject, model, node, clock, blocks: service.blocks, count })

  function count(what: string) {
    counts[what] = (counts[what] ?? 0) + 1
  }

  async function sign({ count: size, wallet: index, isAgain }: Extract<LifeCommand, { do: 'sign' }>) {
    const wallet = wallets[index] as Wallet
    const batch = batches[size % 2] as SigningBatch
    // If they belong to the other wallet, they are new to this one.
    const earlier = isAgain ? model.seen.proofs.slice(-size).map(({ digest }) => digest) : []
    const news = Array.from({ length: size }, (_, position) => createTestSigning(wallet, earlier[position]))
    const answers = await store.insertSignings({ batch, signings: news, now: clock.now() })
    const digests = new Set(news.map(({ statement }) => statement.digest))
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
  async function runStage(run: StageRun, turn: Gate = (call) => call()): Promise<ChainError | Crash | undefined> {
    const taken = takeJobs(run)
    const ids = taken.map(({ id }) => id)
    model.seen.jobs = model.seen.jobs.filter(({ id }) => !ids.includes(id))
    await deleteJobs(subject, ids)
    const own = processes[run.process] as WorkerProcess
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
      if (!(error instanceof Crash) && !(error instanceof ChainError)) throw error
      if (error instanceof Crash) processes[run.process] = createWorkerProcess(outside, clock)
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
        const isExcused = command.fault !== undefined || error instanceof Crash || isDear
        assert(error === undefined || isExcused, "a stage without faults doesn't fail", error)
        return
      }
      case 'race':
        return race(command)
      case 'pin outage':
        return runOutage(command)
      case 'sweep':
        return sweep()
      default:
        return world.act(command)
    }
  }

  /** Repairs all faults. One sweep restores lost jobs; from then on jobs must complete every proof. */
  async function heal() {
    node.setFault()
    node.holdMempool(false)
    world.forgetNothing()
    world.setFee(1)
    // The fee depends on the newest block.
    node.mine(1)
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
  checkEnd()
}

function isOver({ proofs, publications }: Snapshot): boolean {
  return (
    proofs.every(({ status }) => isTerminalProofStatus(status)) &&
    publications.every(({ status }) => status !== 'pending' && status !== 'confirmed')
  )
}
