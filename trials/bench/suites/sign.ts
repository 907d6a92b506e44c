import { type Backend, startPostgres } from '@countersign/testing'
import { median, type Scope, withScope } from '@countersign/testing/stack'
import { INSPECTABLE, measureBudgets } from '../budget/measureBudgets.ts'
import { toBudgetReport } from '../budget/toBudgetReport.ts'
import { type Figures, type Load, measure, measureInTurns } from '../measureLoads.ts'
import { measurePins } from '../measurePins.ts'
import { readCommit } from '../readCommit.ts'
import { type Calm, describeCalm, repeatCalmly } from '../repeatCalmly.ts'
import type { Report, Row, Run } from '../report.ts'
import { signInAll } from '../signer.ts'
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

type Service = Load & { address: string; databaseUrl: string; stack: Backend }
type Start = (changes: { limit?: number; receiptVersion?: 2; checkout?: string }) => Promise<Service>
/** `before` is of another checkout, at `against`. */
type Compared = { own: Service; before: Service | undefined; against: string | undefined; sliceMs: number }

/**
 * `POST /sign/digest` on PostgreSQL with quotes of 39 ms and every check on: how much and how soon, and where the processor time goes. With
 * `--against` beside another checkout, in turns.
 */
export function benchSign(run: Run): Promise<Report[]> {
  return withScope(async (scope) => {
    const { isQuick, against, isBudget = false, say } = run
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
    const before = against === undefined ? undefined : await start({ checkout: against })
    const compared = { own, before, against, sliceMs }
    say('warming up')
    await warmUp([own, ...(before === undefined ? [] : [before])], run, sliceMs)
    const reports = isBudget ? [] : [await reportLoads(scope, run, { ...compared, start })]
    say('where the processor time goes')
    return [...reports, await reportBudget({ postgres, satellite }, run, compared)]
  })
}

/** At each number of connections, beside receipts of version 2, one quote per signature and an echo server; the median over repeats of the ratios within each. */
async function reportLoads(
  scope: Scope,
  run: Run,
  { start, own: first, before, against, sliceMs }: Compared & { start: Start },
): Promise<Report> {
  const { isQuick, rounds, say } = run
  const second = await start({ receiptVersion: 2 })
  await warmUp([second], run, sliceMs)
  const single = await start({ limit: 1 })
  const echo = scope.add(await startEchoServer(), stopProgram)
  const plain = { url: echo.url, cookies: [''], isEcho: true }
  const loads = before === undefined ? ([first, second] as const) : ([first, second, before] as const)
  const rows: Row[] = []
  const calms: Calm<unknown>[] = []
  for (const connections of CONNECTIONS) {
    say(`${connections} connections`)
    const calm = await repeatCalmly(run, async () => {
      const slow = await measure(single, Math.min(connections, MAX_SINGLE_CALLERS), sliceMs)
      const [own, other, old] = await measureInTurns(loads, connections, sliceMs)
      const fast = await measure(plain, connections, sliceMs)
      return { slow, own, other, old, fast }
    })
    calms.push(calm)
    const at = { value: connections, of: 'connections' }
    const made = toRows(calm.repeats).map((row) => ({ ...row, at }))
    for (const { name, ratios = [] } of made)
      for (const { value, to } of ratios) say(`${name}: ${toFigure(value)} × ${to}`)
    rows.push(...made)
  }
  say('what is pinned')
  const pinned = await measurePins(scope, { versions: [first, second], isQuick })
  const how = `median of ${rounds} rounds of ${sliceMs} ms after a warm-up, ${describeCalm(calms)}.`
  return {
    suite: 'sign',
    title: 'Signing through the coordinator',
    setting: await describe(how, against),
    rows: [...rows, ...pinned],
    limits: [
      // By its length, not as measured: a slice is short beside the wait of callers who queue for quotes, which makes their rate look higher.
      { name: 'the most with one quote each', value: 1000 / QUOTE_MS, unit: '/s' },
      { name: 'a quote', value: QUOTE_MS, unit: 'ms' },
    ],
  }
}

async function reportBudget(
  deps: Parameters<typeof measureBudgets>[0],
  { rounds }: Run,
  { own, before, against, sliceMs }: Compared,
): Promise<Report> {
  const toSubject = (load: Service, root: string) => ({ load, stack: load.stack, root })
  const subjects = [toSubject(own, '.'), ...(before && against ? [toSubject(before, against)] : [])]
  const [budget, old] = await measureBudgets(deps, subjects, { connections: BUDGET_CONNECTIONS, sliceMs, rounds })
  if (budget === undefined) throw new Error('no budget was measured')
  const how =
    `processor time for each signature at ${BUDGET_CONNECTIONS} connections, by Linux's count for each thread over ${2 * rounds} slices of ` +
    `${sliceMs} ms; the stages within a thread by a sampling profiler in two more.`
  return toBudgetReport(budget, old, await describe(how, against))
}

async function warmUp(loads: readonly Load[], { isQuick }: Run, sliceMs: number) {
  for (let slice = 0; slice < (isQuick ? 1 : WARM_SLICES); slice++) await measureInTurns(loads, 256, sliceMs / 2)
}

async function describe(how: string, against: string | undefined): Promise<string> {
  const beside = against === undefined ? '' : ` The other checkout is at ${await readCommit(against)}.`
  return (
    `\`POST /sign/digest\` on PostgreSQL, quotes of ${QUOTE_MS} ms, every check on; client, provider, satellite, database, ` +
    `enclave and coordinator share the machine; ${how}${beside}`
  )
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
    { name: 'signatures, one quote each', value: of(({ slow }) => slow.rate), unit: '/s' },
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
