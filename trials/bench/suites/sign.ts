import { type Scope, withScope } from '@countersign/testing/stack'
import { measureBudget } from '../budget.ts'
import { measurePins } from '../measurePins.ts'
import { readCommit } from '../page.ts'
import { describeRounds, measureLoads, type Report, type Row, type Run, toRow } from '../report.ts'
import { type Figures, type Load, measure, measureInTurns, QUOTE_MS } from '../signer.ts'
import { type Bench, type Measured, openBench, startEchoServer } from '../stack.ts'

const CONNECTIONS = { of: 'connections', at: [1, 16, 64, 256] }
/** Where the processor is the limit. */
const BUDGET_CONNECTIONS = 256
/** Code that ran a few thousand times runs several times faster than code that has just been loaded. */
const WARM_SLICES = 5
/** A quote then serves one of them: more callers would only wait longer for their turn. */
const MAX_SINGLE_CALLERS = 16

/** `before` is of another checkout. */
type Compared = { own: Measured; before: Measured | undefined; sliceMs: number }

/**
 * `POST /sign/digest` on PostgreSQL with quotes of 39 ms and every check on: how much and how soon, and where the processor time goes. With
 * `--against` beside another checkout, in turns.
 */
export function benchSign(run: Run): Promise<Report[]> {
  return withScope(async (scope) => {
    const { against, isBudget, rounds, say } = run
    const sliceMs = run.isQuick ? 600 : 1_500
    const bench = await openBench(scope)
    const own = await bench.start()
    const before = against === undefined ? undefined : await bench.start({ checkout: against })
    const subjects = before === undefined ? [own] : [own, before]
    say('warming up')
    await warmUp(subjects, run, sliceMs)
    const reports = isBudget ? [] : [await reportLoads(scope, run, bench, { own, before, sliceMs })]
    say('where the processor time goes')
    const how =
      `processor time for each signature at ${BUDGET_CONNECTIONS} connections, by Linux's count for each thread over ${2 * rounds} slices of ` +
      `${sliceMs} ms.`
    const budget: Report = {
      suite: 'budget',
      title: 'Where the processor time of a signature goes',
      setting: await describe(how, against),
      rows: await measureBudget(
        bench,
        subjects.map((load) => ({ load, stack: load.stack })),
        { connections: BUDGET_CONNECTIONS, sliceMs, rounds },
      ),
    }
    return [...reports, budget]
  })
}

/** At each number of connections, beside receipts of version 2, one quote per signature and an echo server; the median over repeats of the ratios within each. */
async function reportLoads(
  scope: Scope,
  run: Run,
  bench: Bench,
  { own: first, before, sliceMs }: Compared,
): Promise<Report> {
  const second = await bench.start({ receiptVersion: 2 })
  await warmUp([second], run, sliceMs)
  const single = await bench.start({ limit: 1 })
  const echo = { url: (await startEchoServer(scope)).url, cookies: [''], isEcho: true }
  const loads = before === undefined ? ([first, second] as const) : ([first, second, before] as const)
  const { rows, calms } = await measureLoads(
    run,
    CONNECTIONS,
    async (connections): Promise<Repeat> => {
      const slow = await measure(single, Math.min(connections, MAX_SINGLE_CALLERS), sliceMs)
      const [own, other, old] = await measureInTurns(loads, connections, sliceMs)
      return { slow, own, other, old, fast: await measure(echo, connections, sliceMs) }
    },
    (of) => toRows(of, before !== undefined),
  )
  run.say('what is pinned')
  const pinned = await measurePins(scope, { versions: [first, second], isQuick: run.isQuick })
  return {
    suite: 'sign',
    title: 'Signing through the coordinator',
    setting: await describe(describeRounds(run, sliceMs, calms), run.against),
    rows: [...rows, ...pinned],
  }
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

function toRows(of: (pick: (repeat: Repeat) => number) => number, hasOld: boolean): Row[] {
  const toOld = (member: keyof Figures): Row['ratios'] =>
    hasOld ? { 'the other checkout': of(({ own, old }) => own[member] / (old?.[member] ?? Number.NaN)) } : {}
  const old = (name: string, member: keyof Figures, unit: string) =>
    hasOld
      ? [
          toRow(
            `${name}, the other checkout`,
            of((repeat) => repeat.old?.[member] ?? Number.NaN),
            unit,
          ),
        ]
      : []
  return [
    toRow(
      'signatures',
      of(({ own }) => own.rate),
      '/s',
      {
        'one quote each': of(({ own, slow }) => own.rate / slow.rate),
        'an echo server': of(({ own, fast }) => own.rate / fast.rate),
        ...toOld('rate'),
      },
    ),
    toRow(
      'signatures, receipts of version 2',
      of(({ other }) => other.rate),
      '/s',
      {
        'version 1': of(({ own, other }) => other.rate / own.rate),
      },
    ),
    ...old('signatures', 'rate', '/s'),
    toRow(
      'signatures, one quote each',
      of(({ slow }) => slow.rate),
      '/s',
    ),
    toRow(
      'p50',
      of(({ own }) => own.p50),
      'ms',
      toOld('p50'),
    ),
    toRow(
      'p50, receipts of version 2',
      of(({ other }) => other.p50),
      'ms',
      {
        'version 1': of(({ own, other }) => other.p50 / own.p50),
      },
    ),
    ...old('p50', 'p50', 'ms'),
    toRow(
      'p99',
      of(({ own }) => own.p99),
      'ms',
      toOld('p99'),
    ),
    toRow(
      'p99, receipts of version 2',
      of(({ other }) => other.p99),
      'ms',
    ),
    ...old('p99', 'p99', 'ms'),
  ]
}
