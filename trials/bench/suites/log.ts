import { cpus } from 'node:os'
import { findFreePorts, startPostgres } from '@countersign/testing'
import { median, withScope } from '@countersign/testing/stack'
import { type Load, measureInTurns } from '../measureLoads.ts'
import { type Calm, describeCalm, repeatCalmly } from '../repeatCalmly.ts'
import type { Report, Row, Run } from '../report.ts'
import { signInAll } from '../signer.ts'
import { delay, QUOTE_MS, startDelay, startSatelliteServer, startStack, stopProgram } from '../startStack.ts'
import { toFigure } from '../table.ts'

/** With the first ones the callers' own waiting sets the rate, whatever the service could do; the last fill eight calls of 256, all that go to an enclave at a time. */
const CONNECTIONS = [1, 16, 64, 256, 1024, 2048]
/** Witnesses are asked about ten times a second here, and their code has to be warm too. */
const WARM_SLICES = 10
/** Of a slice, for each caller: so that all get some four answers. Longer ones would not come in turns often enough for a machine whose speed changes. */
const EACH_MS = 4
const USERS = 8
const WITNESSES = 3
/** To each witness and back. */
const DISTANCE_MS = 20

/**
 * What a log costs: signing with three witnesses, of which two must cosign, each some way off, beside signing without one, in turns. The
 * ratio is that of all signatures: a machine whose speed changes by a third within a repeat makes that of a single one worth little.
 */
export function benchLog({ rounds, isQuick, say }: Run): Promise<Report> {
  return withScope(async ({ add }) => {
    const sliceMs = isQuick ? 600 : 2_000
    const toSliceMs = (connections: number) => (isQuick ? sliceMs : Math.max(sliceMs, EACH_MS * connections))
    const postgres = add(await startPostgres(), ({ stop }) => stop())
    const satellite = add(await startSatelliteServer(), stopProgram)
    const distance = add(await startDelay(DISTANCE_MS), stopProgram)
    const [metricsPort = 0] = await findFreePorts(1)
    const start = async (hasLog: boolean): Promise<Load> => {
      const { stop, address, url, untilReady } = await startStack({
        satellite,
        users: USERS,
        databaseUrl: await postgres.createDatabase(),
        limit: 256,
        receiptVersion: 2,
        ...(hasLog && {
          metricsPort,
          log: { witnesses: WITNESSES, route: (witness) => delay(distance, witness.url) },
        }),
      })
      add(stop, () => stop())
      await untilReady()
      return { url: address, cookies: await signInAll({ url }, USERS) }
    }
    const loads = [await start(false), await start(true)] as const
    say('warming up')
    for (let slice = 0; slice < WARM_SLICES; slice++) await measureInTurns(loads, 256, sliceMs / 2)
    const rows: Row[] = []
    const calms: Calm<unknown>[] = []
    for (const connections of CONNECTIONS) {
      say(`${connections} connections`)
      const calm = await repeatCalmly({ rounds, isQuick }, async () => {
        const [before, idleBefore] = [await readRounds(metricsPort), readProcessor()]
        const [plain, logged] = await measureInTurns(loads, connections, toSliceMs(connections))
        const [after, idleAfter] = [await readRounds(metricsPort), readProcessor()]
        const quorumMs = (1000 * (after.seconds - before.seconds)) / (after.count - before.count)
        const idle = (idleAfter.idle - idleBefore.idle) / (idleAfter.all - idleBefore.all)
        return { plain, logged, quorumMs, busy: 1 - idle }
      })
      calms.push(calm)
      const of = (pick: (repeat: (typeof calm.repeats)[number]) => number) => median(calm.repeats.map(pick))
      const sumRates = (lane: 'plain' | 'logged') => sum(calm.repeats.map((repeat) => repeat[lane].rate))
      const ratio = sumRates('logged') / sumRates('plain')
      const moreMs = of(({ plain, logged }) => logged.p50 - plain.p50)
      say(`with a log ${toFigure(ratio)} × without, p50 ${toFigure(moreMs)} ms more`)
      const at = { value: connections, of: 'connections' }
      rows.push(
        { name: 'signatures', at, value: of(({ plain }) => plain.rate), unit: '/s' },
        {
          name: 'signatures, with a log',
          at,
          value: of(({ logged }) => logged.rate),
          unit: '/s',
          ratios: [{ value: ratio, to: 'without' }],
        },
        { name: 'p50', at, value: of(({ plain }) => plain.p50), unit: 'ms' },
        { name: 'p50, with a log', at, value: of(({ logged }) => logged.p50), unit: 'ms' },
        { name: 'p50, more with a log', at, value: moreMs, unit: 'ms' },
        { name: 'the coordinator’s wait for a quorum, mean', at, value: of(({ quorumMs }) => quorumMs), unit: 'ms' },
        {
          name: 'p50, more than that wait',
          at,
          value: of(({ plain, logged, quorumMs }) => logged.p50 - plain.p50 - quorumMs),
          unit: 'ms',
        },
        { name: 'p99', at, value: of(({ plain }) => plain.p99), unit: 'ms' },
        { name: 'p99, with a log', at, value: of(({ logged }) => logged.p99), unit: 'ms' },
        { name: 'processor in use', at, value: 100 * of(({ busy }) => busy), unit: '%' },
      )
    }
    return {
      suite: 'log',
      title: 'Signing with a log',
      setting:
        `\`POST /sign/digest\` on PostgreSQL, quotes of ${QUOTE_MS} ms, receipts of version 2, every check on; with a log and ${WITNESSES} ` +
        `witnesses, of which two must cosign, each ${DISTANCE_MS} ms away, beside none; client, provider, satellite, database, enclaves, ` +
        `coordinators and witnesses share the machine; median of ${rounds} rounds of ${sliceMs} ms, or of ${EACH_MS} ms for each connection where that is more, after a warm-up, ratios of rates over all of them, ${describeCalm(calms)}.`,
      rows,
      notes: [
        'Where the processor is not nearly all in use, the rate is the number of callers by what each waits, whatever the service could do: there the log shows in the wait. Where it is, the ratio of the rates is what the log costs.',
      ],
    }
  })
}

/** Rounds of witnesses until now, and how long they took in all: from asking until a quorum has cosigned. */
async function readRounds(port: number): Promise<{ seconds: number; count: number }> {
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const read = (name: string) =>
    Number(new RegExp(`^countersign_log_round_seconds_${name}{outcome="cosigned"} (.+)$`, 'm').exec(metrics)?.[1])
  return { seconds: read('sum'), count: read('count') }
}

const sum = (values: readonly number[]) => values.reduce((left, right) => left + right, 0)

/** Milliseconds of all cores since the machine started. */
function readProcessor(): { idle: number; all: number } {
  const times = cpus().map((core) => core.times)
  return { idle: sum(times.map(({ idle }) => idle)), all: sum(times.map((core) => sum(Object.values(core)))) }
}
