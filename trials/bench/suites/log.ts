import { startPostgres } from '@countersign/testing'
import { median, withScope } from '@countersign/testing/stack'
import { type Load, measureInTurns } from '../measureLoads.ts'
import { type Calm, describeCalm, repeatCalmly } from '../repeatCalmly.ts'
import type { Report, Row, Run } from '../report.ts'
import { signInAll } from '../signer.ts'
import { QUOTE_MS, startDelay, startSatelliteServer, startStack, stopProgram } from '../startStack.ts'
import { toFigure } from '../table.ts'

const CONNECTIONS = [1, 16, 64, 256]
const WARM_SLICES = 5
const USERS = 8
const WITNESSES = 3
/** To each witness and back. */
const ROUND_TRIP_MS = 20

/**
 * What a log costs: signing with three witnesses, of which two must cosign, each a round trip away, beside signing without one; in turns, and
 * the median over repeats of the ratios within each repeat.
 */
export function benchLog({ rounds, isQuick, say }: Run): Promise<Report> {
  return withScope(async ({ add }) => {
    const sliceMs = isQuick ? 600 : 2_000
    const postgres = add(await startPostgres(), ({ stop }) => stop())
    const satellite = add(await startSatelliteServer(), stopProgram)
    const start = async (hasLog: boolean): Promise<Load> => {
      const { stop, address, url, untilReady } = await startStack({
        satellite,
        users: USERS,
        databaseUrl: await postgres.createDatabase(),
        limit: 256,
        receiptVersion: 2,
        ...(hasLog && {
          log: {
            witnesses: WITNESSES,
            route: async (witness) => add(await startDelay(witness.url, ROUND_TRIP_MS), stopProgram).url,
          },
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
        const [plain, logged] = await measureInTurns(loads, connections, sliceMs)
        return { plain, logged }
      })
      calms.push(calm)
      const of = (pick: (repeat: (typeof calm.repeats)[number]) => number) => median(calm.repeats.map(pick))
      const ratio = of(({ plain, logged }) => logged.rate / plain.rate)
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
        { name: 'p99', at, value: of(({ plain }) => plain.p99), unit: 'ms' },
        { name: 'p99, with a log', at, value: of(({ logged }) => logged.p99), unit: 'ms' },
      )
    }
    return {
      suite: 'log',
      title: 'Signing with a log',
      setting:
        `\`POST /sign/digest\` on PostgreSQL, quotes of ${QUOTE_MS} ms, receipts of version 2, every check on; with a log and ${WITNESSES} ` +
        `witnesses, of which two must cosign, each ${ROUND_TRIP_MS} ms away, beside none; client, provider, satellite, database, enclaves, ` +
        `coordinators and witnesses share the machine; median of ${rounds} rounds of ${sliceMs} ms after a warm-up, ${describeCalm(calms)}.`,
      rows,
    }
  })
}
