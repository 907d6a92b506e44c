import { startPostgres } from '@countersign/testing'
import { createAccounts, createUser, median, type TestUser, withScope } from '@countersign/testing/stack'
import { openQuery } from '../../openQuery.ts'
import { type Figures, type Load, measureInTurns } from '../measureLoads.ts'
import { type Calm, describeCalm, repeatCalmly } from '../repeatCalmly.ts'
import type { Report, Row, Run } from '../report.ts'
import { QUOTE_MS, startSatelliteServer, startStack, stopProgram } from '../startStack.ts'
import { toFigure } from '../table.ts'
import { createVaults } from '../vaults.ts'

const CONNECTIONS = [16, 64, 256]
const WARM_SLICES = 5
const USERS = 8
const LIMIT = 256

/** What is measured, by name. `before` is the own wallet at another checkout. */
type Name = 'own' | 'approved' | 'free' | 'before'

/**
 * What vaults cost: signing with the own wallet beside signing with a vault, with one approval and with none, and, with `--against`,
 * beside the own wallet at another checkout; in turns, and the median over repeats of the ratios within each repeat.
 */
export function benchVaults({ rounds, isQuick, against, say }: Run): Promise<Report> {
  return withScope(async ({ add }) => {
    const sliceMs = isQuick ? 600 : 1_500
    const postgres = add(await startPostgres(), ({ stop }) => stop())
    const satellite = add(await startSatelliteServer(), stopProgram)
    const start = async (checkout?: string) => {
      const databaseUrl = await postgres.createDatabase()
      const { stop, address, url } = await startStack({ satellite, users: USERS, databaseUrl, limit: LIMIT, checkout })
      add(stop, () => stop())
      const users: TestUser[] = []
      for (const { sub } of createAccounts(USERS)) {
        const user = createUser({ url })
        await user.signIn(sub)
        users.push(user)
      }
      return { databaseUrl, users, load: { url: address, cookies: users.map(({ cookie }) => cookie) } }
    }
    const { load: own, users, databaseUrl } = await start()
    const { query } = add(await openQuery(databaseUrl), ({ close }) => close())
    const loads: { name: Name; load: Load }[] = [
      { name: 'own', load: own },
      { name: 'approved', load: { ...own, vaults: await createVaults({ users, query }, 1) } },
      { name: 'free', load: { ...own, vaults: await createVaults({ users, query }, 0) } },
      ...(against === undefined ? [] : [{ name: 'before' as const, load: (await start(against)).load }]),
    ]
    const measure = async (connections: number, durationMs: number) => {
      const figures = await measureInTurns(
        loads.map(({ load }) => load),
        connections,
        durationMs,
      )
      return new Map(loads.map(({ name }, index) => [name, figures[index]]))
    }
    say('warming up')
    for (let slice = 0; slice < WARM_SLICES; slice++) await measure(LIMIT, sliceMs / 2)
    const rows: Row[] = []
    const calms: Calm<unknown>[] = []
    for (const connections of CONNECTIONS) {
      say(`${connections} connections`)
      const calm = await repeatCalmly({ rounds, isQuick }, () => measure(connections, sliceMs))
      calms.push(calm)
      const of = (name: Name, member: keyof Figures) =>
        median(calm.repeats.map((repeat) => repeat.get(name)?.[member] ?? Number.NaN))
      const compare = (name: Name, to: Name) =>
        median(calm.repeats.map((repeat) => (repeat.get(name)?.rate ?? 0) / (repeat.get(to)?.rate ?? 0)))
      const at = { value: connections, of: 'connections' }
      const toOwn = (name: Name) => [{ value: compare(name, 'own'), to: 'the own wallet' }]
      const toOther = against === undefined ? [] : [{ value: compare('own', 'before'), to: 'the other checkout' }]
      for (const { value, to } of [...toOther, ...toOwn('approved')]) say(`${toFigure(value)} × ${to}`)
      const signatures = { at, unit: '/s' }
      rows.push(
        { name: 'signatures, own wallet', ...signatures, value: of('own', 'rate'), ratios: toOther },
        {
          name: 'signatures, vault, one approval each',
          ...signatures,
          value: of('approved', 'rate'),
          ratios: toOwn('approved'),
        },
        {
          name: 'signatures, vault, no approval',
          ...signatures,
          value: of('free', 'rate'),
          ratios: toOwn('free'),
        },
        { name: 'p50, own wallet', at, value: of('own', 'p50'), unit: 'ms' },
        { name: 'p50, vault, one approval each', at, value: of('approved', 'p50'), unit: 'ms' },
        { name: 'p99, own wallet', at, value: of('own', 'p99'), unit: 'ms' },
        { name: 'p99, vault, one approval each', at, value: of('approved', 'p99'), unit: 'ms' },
      )
    }
    return {
      suite: 'vaults',
      title: 'Signing with vaults',
      setting:
        `\`POST /sign/digest\` on PostgreSQL, quotes of ${QUOTE_MS} ms, every check on; receipts of the own wallet are of version 1, ` +
        'those of vaults of version 2; no approval is used twice; ' +
        `median of ${rounds} rounds of ${sliceMs} ms after a warm-up, ${describeCalm(calms)}.`,
      rows,
    }
  })
}
