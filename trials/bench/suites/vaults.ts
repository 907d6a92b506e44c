import { createAccounts, createUser, withScope } from '@countersign/testing/stack'
import { openQuery } from '../../openQuery.ts'
import { describeRounds, measureLoads, type Report, type Run, toRow } from '../report.ts'
import { type Figures, type Load, measureInTurns, QUOTE_MS } from '../signer.ts'
import { openBench } from '../stack.ts'
import { createVaults } from '../vaults.ts'

const CONNECTIONS = { of: 'connections', at: [16, 64, 256] }
const WARM_SLICES = 5
const USERS = 8

/**
 * What vaults cost: signing with the own wallet beside signing with a vault, with one approval and with none, and, with `--against`,
 * beside the own wallet at another checkout; in turns, and the median over repeats of the ratios within each repeat.
 */
export function benchVaults(run: Run): Promise<Report> {
  return withScope(async (scope) => {
    const { isQuick, against, say } = run
    const sliceMs = isQuick ? 600 : 1_500
    const { start } = await openBench(scope)
    const own = await start({ users: 0, accounts: USERS })
    const users = createAccounts(USERS).map(({ sub }) => ({ sub, user: createUser(own.stack) }))
    for (const { sub, user } of users) await user.signIn(sub)
    const { query } = scope.add(await openQuery(own.databaseUrl), ({ close }) => close())
    const load: Load = { url: own.url, cookies: users.map(({ user }) => user.cookie) }
    const toVaults = (approvals: 0 | 1) => createVaults({ users: users.map(({ user }) => user), query }, approvals)
    const loads = [
      load,
      { ...load, vaults: await toVaults(1) },
      { ...load, vaults: await toVaults(0) },
      ...(against === undefined ? [] : [await start({ checkout: against })]),
    ]
    type Repeat = [own: Figures, approved: Figures, free: Figures, before?: Figures]
    const measure = async (connections: number, ms: number) => (await measureInTurns(loads, connections, ms)) as Repeat
    say('warming up')
    for (let slice = 0; slice < WARM_SLICES; slice++) await measure(256, sliceMs / 2)
    const { rows, calms } = await measureLoads(
      run,
      CONNECTIONS,
      (connections) => measure(connections, sliceMs),
      (of) => {
        const toOther = {
          'the other checkout': of(([wallet, , , before]) => wallet.rate / (before?.rate ?? Number.NaN)),
        }
        return [
          toRow(
            'signatures, own wallet',
            of(([wallet]) => wallet.rate),
            '/s',
            against === undefined ? {} : toOther,
          ),
          toRow(
            'signatures, vault, one approval each',
            of(([, approved]) => approved.rate),
            '/s',
            {
              'the own wallet': of(([wallet, approved]) => approved.rate / wallet.rate),
            },
          ),
          toRow(
            'signatures, vault, no approval',
            of(([, , free]) => free.rate),
            '/s',
            {
              'the own wallet': of(([wallet, , free]) => free.rate / wallet.rate),
            },
          ),
          toRow(
            'p50, own wallet',
            of(([wallet]) => wallet.p50),
            'ms',
          ),
          toRow(
            'p50, vault, one approval each',
            of(([, approved]) => approved.p50),
            'ms',
          ),
          toRow(
            'p99, own wallet',
            of(([wallet]) => wallet.p99),
            'ms',
          ),
          toRow(
            'p99, vault, one approval each',
            of(([, approved]) => approved.p99),
            'ms',
          ),
        ]
      },
    )
    return {
      suite: 'vaults',
      title: 'Signing with vaults',
      setting:
        `\`POST /sign/digest\` on PostgreSQL, quotes of ${QUOTE_MS} ms, every check on; receipts of the own wallet are of version 1, ` +
        `those of vaults of version 2; no approval is used twice; ${describeRounds(run, sliceMs, calms)}`,
      rows,
    }
  })
}
