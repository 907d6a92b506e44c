import { type Backend, startPostgres } from '@countersign/testing'
import { median, type Scope, withScope } from '@countersign/testing/stack'
import { createHeliaPinner } from '../../../services/coordinator/src/ipfs/helia.ts'
import { openStores } from '../../../services/coordinator/src/store/openStore.ts'
import { INSPECTABLE, measureBudgets } from '../budget/measureBudgets.ts'
import { toBudgetReport } from '../budget/toBudgetReport.ts'
import { type Figures, type Load, measure, measureInTurns } from '../measureLoads.ts'
import { countBlocks, type PinnedBatch, pinInTurns } from '../pinReceipts.ts'
import { readCommit } from '../readCommit.ts'
import { type Calm, describeCalm, repeatCalmly } from '../repeatCalmly.ts'
import type { Report, Row, Run } from '../report.ts'
import { signInAll, signMany } from '../signer.ts'
import { QUOTE_MS, startEchoServer, startSatelliteServer, startStack, stopProgram } from '../startStack.ts'
import { toFigure } from '../table.ts'

const CONNECTIONS = [1, 16, 64, 256]
/** Where the processor is the limit. */
const BUDGET_CONNECTIONS = 256
/** Code that ran a few thousand times runs several times faster than code that has just been loaded. */
const WARM_SLICES = 5
const USERS = 8
/** A quote then serves one of them: more callers would only wait longer for their turn. */
const MAX_SINGLE_CALLERS = 16
/** Two quotes are under way in turn, so that this many callers make batches of 16 and a few more. */
const CALLERS_OF_BATCHES = 40
const LARGE_BATCH = 16
const ONE_EACH = 'signatures, one quote each'

type Service = Load & { address: string; databaseUrl: string; stack: Backend }
type Start = (changes: { limit?: number; receiptVersion?: 2; checkout?: string }) => Promise<Service>

/**
 * `POST /sign/digest` on PostgreSQL with quotes of 39 ms and every check on: how much and how soon, and where the processor time goes. With
 * `--against` beside another checkout, in turns.
 */
export function benchSign(run: Run): Promise<Report[]> {
  return withScope(async (scope) => {
    const { rounds, isQuick, against, isBudget = false, say } = run
    const { add } = scope
    const sliceMs = isQuick ? 600 : 1_500
    const postgres = add(await startPostgres(), ({ stop }) => stop())
    const satellite = add(await startSatelliteServer(), stopProgram)
    const start: Start = async (changes) => {
      const databaseUrl = await postgres.createDatabase()
      const parameters = { satellite, users: USERS, databaseUrl, limit: 256, env: INSPECTABLE, ...changes }
      const stack = add(await startStack(parameters), ({ stop }) => stop())
      const cookies = await signInAll(stack, USERS)
      return { url: stack.address, address: stack.address, databaseUrl, cookies, stack }
    }
    const own = await start({})
    const before = against === undefined ? [] : [await start({ checkout: against })]
    const second = isBudget ? [] : [await start({ receiptVersion: 2 })]
    say('warming up')
    for (let slice = 0; slice < WARM_SLICES; slice++)
      await measureInTurns([own, ...before, ...second], 256, sliceMs / 2)
    const commit = against === undefined ? '' : ` The other checkout is at ${await readCommit(against)}.`
    const setting =
      `\`POST /sign/digest\` on PostgreSQL, quotes of ${QUOTE_MS} ms, every check on; client, provider, satellite, database, ` +
      'enclave and coordinator share the machine; '
    const reports: Report[] = []
    for (const other of second) {
      const { rows, calms } = await measureLoads(scope, { run, start, own, second: other, before, sliceMs })
      say('what is pinned')
      rows.push(...(await measurePins(scope, { versions: [own, other], isQuick })))
      const how = `median of ${rounds} rounds of ${sliceMs} ms after a warm-up, ${describeCalm(calms)}.`
      reports.push({
        suite: 'sign',
        title: 'Signing through the coordinator',
        setting: setting + how + commit,
        rows,
        limits: [
          {
            name: 'the most with one quote each',
            value: Math.max(...rows.filter(({ name }) => name === ONE_EACH).map(({ value }) => value)),
            unit: '/s',
          },
          { name: 'a quote', value: QUOTE_MS, unit: 'ms' },
        ],
      })
    }
    say('where the processor time goes')
    const roots = ['.', ...(against === undefined ? [] : [against])]
    const subjects = [own, ...before].map((load, index) => ({ load, stack: load.stack, root: roots[index] ?? '.' }))
    const load = { connections: BUDGET_CONNECTIONS, sliceMs, rounds }
    const [budget, old] = await measureBudgets({ postgres, satellite }, subjects, load)
    if (budget === undefined) throw new Error('no budget was measured')
    const how =
      `processor time for each signature at ${BUDGET_CONNECTIONS} connections, by Linux's count for each thread over ${rounds} slices of ` +
      `${sliceMs} ms; the stages within a thread by a sampling profiler in one more.`
    return [...reports, toBudgetReport(budget, old, setting + how + commit)]
  })
}

/** At each number of connections, beside one quote per signature and an echo server too; the median over repeats of the ratios within each. */
async function measureLoads(
  { add }: Scope,
  parameters: {
    run: Run
    start: Start
    own: Service
    second: Service
    /** One, or none. */
    before: readonly Service[]
    sliceMs: number
  },
): Promise<{ rows: Row[]; calms: Calm<unknown>[] }> {
  const { run, start, own: first, second, before, sliceMs } = parameters
  const single = await start({ limit: 1 })
  const echo = add(await startEchoServer(), stopProgram)
  const plain = { url: echo.url, cookies: [''], isEcho: true }
  const rows: Row[] = []
  const calms: Calm<unknown>[] = []
  for (const connections of CONNECTIONS) {
    run.say(`${connections} connections`)
    const calm = await repeatCalmly(run, async () => {
      const slow = await measure(single, Math.min(connections, MAX_SINGLE_CALLERS), sliceMs)
      const [own, other, old] = await measureInTurns([first, second, ...before], connections, sliceMs)
      const fast = await measure(plain, connections, sliceMs)
      return { slow, own, other, old, fast }
    })
    calms.push(calm)
    const at = { value: connections, of: 'connections' }
    const made = toRows(calm.repeats).map((row) => ({ ...row, at }))
    for (const { name, ratios = [] } of made)
      for (const { value, to } of ratios) run.say(`${name}: ${toFigure(value)} × ${to}`)
    rows.push(...made)
  }
  return { rows, calms }
}

/** Each of them measured in the same while. `old` is of another checkout. */
type Repeat = { slow: Figures; own: Figures; other: Figures; old: Figures | undefined; fast: Figures }

/** The rows of one load. */
function toRows(repeats: readonly Repeat[]): Omit<Row, 'at'>[] {
  const of = (pick: (repeat: Repeat) => number) => median(repeats.map(pick))
  const hasOld = repeats.some(({ old }) => old !== undefined)
  const ofOld = (member: keyof Figures) => of(({ old }) => old?.[member] ?? Number.NaN)
  const toOld = (member: keyof Figures) =>
    hasOld
      ? [{ value: of(({ own, old }) => own[member] / (old?.[member] ?? Number.NaN)), to: 'the other checkout' }]
      : []
  const old = (name: string, member: keyof Figures, unit: string) =>
    hasOld ? [{ name: `${name}, the other checkout`, value: ofOld(member), unit }] : []
  return [
    {
      name: 'signatures',
      value: of(({ own }) => own.rate),
      unit: '/s',
      ratios: [
        { value: of(({ own, slow }) => own.rate / slow.rate), to: 'one quote each' },
        { value: of(({ own, fast }) => own.rate / fast.rate), to: 'an echo server' },
        ...toOld('rate'),
      ],
    },
    {
      name: 'signatures, receipts of version 2',
      value: of(({ other }) => other.rate),
      unit: '/s',
      ratios: [{ value: of(({ own, other }) => other.rate / own.rate), to: 'version 1' }],
    },
    ...old('signatures', 'rate', '/s'),
    { name: ONE_EACH, value: of(({ slow }) => slow.rate), unit: '/s' },
    { name: 'p50', value: of(({ own }) => own.p50), unit: 'ms', ratios: toOld('p50') },
    {
      name: 'p50, receipts of version 2',
      value: of(({ other }) => other.p50),
      unit: 'ms',
      ratios: [{ value: of(({ own, other }) => other.p50 / own.p50), to: 'version 1' }],
    },
    ...old('p50', 'p50', 'ms'),
    { name: 'p99', value: of(({ own }) => own.p99), unit: 'ms', ratios: toOld('p99') },
    { name: 'p99, receipts of version 2', value: of(({ other }) => other.p99), unit: 'ms' },
    ...old('p99', 'p99', 'ms'),
  ]
}

/** What the receipts of both versions put on IPFS, in large batches and alone, and how long pinning takes where each has its own batch. */
async function measurePins(
  { add, createFolder }: Scope,
  { versions, isQuick }: { versions: readonly [Service, Service]; isQuick: boolean },
): Promise<Row[]> {
  const { pinner } = add(await createHeliaPinner({ dataDir: await createFolder() }), ({ stop }) => stop())
  const measured = []
  for (const service of versions) {
    const { store, pipeline } = await openStores({ databaseUrl: service.databaseUrl })
    add(store, ({ close }) => close())
    const { cookies } = service
    const many = await signMany(service, { cookies, count: isQuick ? 200 : 1_000, connections: CALLERS_OF_BATCHES })
    const alone = await signMany(service, { cookies, count: isQuick ? 5 : 30, connections: 1 })
    const { batches, shared } = await countBlocks(pipeline, many)
    const single = (await countBlocks(pipeline, alone)).batches.filter(({ signatures }) => signatures === 1)
    measured.push({ pipeline, slugs: alone, large: batches.filter(isLarge), single, shared })
  }
  const [first, second] = measured as [(typeof measured)[number], (typeof measured)[number]]
  const [firstMs = Number.NaN, secondMs = Number.NaN] = await pinInTurns(pinner, [first, second])
  const perSignature = median(first.large.map(toBytesEach))
  const worst = Math.max(...second.large.map(toBytesEach))
  const [one, other] = [first.single[0], second.single[0]]
  if (one === undefined || other === undefined) throw new Error('no batch had one signature')
  const at = { value: 1, of: 'signature in the batch' }
  const sizes = second.large.map(({ signatures }) => signatures)
  const large = { value: Math.min(...sizes), of: `to ${Math.max(...sizes)} signatures in a batch` }
  return [
    { name: 'bytes pinned for each signature', at: large, value: perSignature, unit: 'bytes' },
    {
      name: 'the same, receipts of version 2',
      at: large,
      value: median(second.large.map(toBytesEach)),
      unit: 'bytes',
      ratios: [
        { value: median(second.large.map(toBytesEach)) / perSignature, to: 'version 1' },
        { value: worst / perSignature, to: 'version 1 in the worst batch' },
      ],
    },
    { name: 'bytes pinned', at, value: one.bytes, unit: 'bytes' },
    {
      name: 'bytes pinned, receipts of version 2',
      at,
      value: other.bytes,
      unit: 'bytes',
      ratios: [{ value: other.bytes / one.bytes, to: 'version 1' }],
    },
    { name: 'blocks pinned', at, value: one.blocks, unit: 'blocks' },
    { name: 'blocks pinned, receipts of version 2', at, value: other.blocks, unit: 'blocks' },
    { name: 'time to pin and read back', at, value: firstMs, unit: 'ms' },
    {
      name: 'time to pin and read back, receipts of version 2',
      at,
      value: secondMs,
      unit: 'ms',
      ratios: [{ value: secondMs / firstMs, to: 'version 1' }],
    },
    { name: 'bytes shared for hours', value: first.shared.bytes, unit: 'bytes' },
    { name: 'bytes shared for hours, receipts of version 2', value: second.shared.bytes, unit: 'bytes' },
  ]
}

const isLarge = ({ signatures }: PinnedBatch) => signatures >= LARGE_BATCH
const toBytesEach = ({ signatures, bytes }: PinnedBatch) => bytes / signatures
