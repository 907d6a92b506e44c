import { cpus } from 'node:os'
import { findFreePorts } from '@countersign/testing'
import { withScope } from '@countersign/testing/stack'
import { describeCalm } from '../repeatCalmly.ts'
import { measureLoads, type Report, type Run, toRow } from '../report.ts'
import { measureInTurns, QUOTE_MS } from '../signer.ts'
import { delay, openBench, startDelay } from '../stack.ts'

/** With the first ones the callers' own waiting sets the rate, whatever the service could do; the last fill eight calls of 256, all that go to an enclave at a time. */
const CONNECTIONS = { of: 'connections', at: [1, 16, 64, 256, 1024, 2048] }
/** Witnesses are asked about ten times a second here, and their code has to be warm too. */
const WARM_SLICES = 10
/** Of a slice, for each caller: so that all get some four answers. Longer ones would not come in turns often enough for a machine whose speed changes. */
const EACH_MS = 4
const WITNESSES = 3
/** To each witness and back. */
const DISTANCE_MS = 20

/**
 * What a log costs: signing with three witnesses, of which two must cosign, each some way off, beside signing without one, in turns. The
 * ratio is that of all signatures: a machine whose speed changes by a third within a repeat makes that of a single one worth little.
 */
export function benchLog(run: Run): Promise<Report> {
  return withScope(async (scope) => {
    const { isQuick, rounds, say } = run
    const sliceMs = isQuick ? 600 : 2_000
    const toSliceMs = (connections: number) => (isQuick ? sliceMs : Math.max(sliceMs, EACH_MS * connections))
    const { start } = await openBench(scope)
    const distance = await startDelay(scope, DISTANCE_MS)
    const [metricsPort = 0] = await findFreePorts(1)
    const plain = await start({ receiptVersion: 2 })
    const log = { witnesses: WITNESSES, route: ({ url }: { url: string }) => delay(distance, url) }
    const logged = await start({ receiptVersion: 2, metricsPort, log })
    const loads = [plain, logged] as const
    say('warming up')
    for (let slice = 0; slice < WARM_SLICES; slice++) await measureInTurns(loads, 256, sliceMs / 2)
    const { rows, calms } = await measureLoads(
      run,
      CONNECTIONS,
      async (connections) => {
        const [before, idleBefore] = [await readRounds(metricsPort), readProcessor()]
        const [without, withLog] = await measureInTurns(loads, connections, toSliceMs(connections))
        const [after, idleAfter] = [await readRounds(metricsPort), readProcessor()]
        const quorumMs = (1000 * (after.seconds - before.seconds)) / (after.count - before.count)
        const idle = (idleAfter.idle - idleBefore.idle) / (idleAfter.all - idleBefore.all)
        return { without, withLog, quorumMs, busy: 1 - idle }
      },
      (of, repeats) => {
        const sumRates = (lane: 'without' | 'withLog') => sum(repeats.map((repeat) => repeat[lane].rate))
        return [
          toRow(
            'signatures',
            of(({ without }) => without.rate),
            '/s',
          ),
          toRow(
            'signatures, with a log',
            of(({ withLog }) => withLog.rate),
            '/s',
            {
              without: sumRates('withLog') / sumRates('without'),
            },
          ),
          toRow(
            'p50',
            of(({ without }) => without.p50),
            'ms',
          ),
          toRow(
            'p50, with a log',
            of(({ withLog }) => withLog.p50),
            'ms',
          ),
          toRow(
            'p50, more with a log',
            of(({ without, withLog }) => withLog.p50 - without.p50),
            'ms',
          ),
          toRow(
            'the coordinator’s wait for a quorum, mean',
            of(({ quorumMs }) => quorumMs),
            'ms',
          ),
          toRow(
            'p50, more than that wait',
            of(({ without, withLog, quorumMs }) => withLog.p50 - without.p50 - quorumMs),
            'ms',
          ),
          toRow(
            'p99',
            of(({ without }) => without.p99),
            'ms',
          ),
          toRow(
            'p99, with a log',
            of(({ withLog }) => withLog.p99),
            'ms',
          ),
          toRow('processor in use', 100 * of(({ busy }) => busy), '%'),
        ]
      },
    )
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
