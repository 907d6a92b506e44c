import { setTimeout } from 'node:timers/promises'
import { createPolicy } from '@countersign/policy'
import { fromHex, type Hex } from '@countersign/protocol'
import { type BackendLog, connectPostgres } from '@countersign/testing'
import { createAccounts, createUser, type Scope, withScope } from '@countersign/testing/stack'
import { createClient } from '../../services/enclave/test/clientKey.ts'
import { createVault } from '../createVault.ts'
import { startInterceptor } from '../interceptor.ts'
import { toPolicy } from '../log/checkLog.ts'
import { openQuery } from '../openQuery.ts'
import { createQuickPasskey } from '../quickPasskey.ts'
import { BUDGET, readBudget } from './budget.ts'
import { readCommit } from './describeMachine.ts'
import { type LoadedVault, QUOTE_MS, type Stamper } from './load.ts'
import { describeTurns, type Lane, measureLanes, type Report, type Row, type Run } from './report.ts'
import { type Changes, type Measured, openBench } from './stack.ts'

/** Code runs several times faster after a few thousand calls, once the engine has compiled it. */
const WARM_SLICES = 6
/** One quote per signature: more callers would only wait longer. */
const SINGLE_CONNECTIONS = [1, 16]
/** At low numbers of connections these lanes don't differ. */
const BUSY_CONNECTIONS = [64, 256]
/** Round trip to each witness. */
const DISTANCE_MS = 20
const APPROVAL_MS = 12 * 3_600_000
const LESS_QUOTE = `p50@1-${QUOTE_MS}`

const route: BackendLog['route'] = async ({ url }, inner) => {
  const far = await startInterceptor(url, async (_, forward) => {
    await setTimeout(DISTANCE_MS)
    return forward()
  })
  return inner.add(far, ({ stop }) => stop()).url
}

/** Lanes by name. Those of the other checkout have the prefix `old `. */
const LANES: readonly {
  name: string
  changes: Changes
  isCompared?: true
  vaults?: 'free' | 'logged' | 'budget'
  /** Sessions with browser keys, whose callers stamp each request. */
  isBound?: true
  at?: readonly number[]
}[] = [
  { name: 'v1', changes: {}, isCompared: true },
  { name: 'v1 bound', changes: {}, isBound: true },
  { name: 'v2', changes: { receipts: 2 }, isCompared: true },
  { name: 'v2+log', changes: { receipts: 2, log: { route } }, isCompared: true },
  { name: 'one quote each', changes: { limit: 1 }, at: SINGLE_CONNECTIONS },
  { name: 'two enclaves', changes: { enclaves: 2 }, at: BUSY_CONNECTIONS },
  { name: 'vault', changes: {}, vaults: 'free', at: BUSY_CONNECTIONS },
  { name: 'logged vault', changes: { receipts: 2, log: { route } }, vaults: 'logged', at: BUSY_CONNECTIONS },
  { name: 'budgeted vault', changes: { receipts: 2, log: { route } }, vaults: 'budget', at: BUSY_CONNECTIONS },
]

const RATIOS = [
  ['v1', 'one quote each'],
  ['v1 bound', 'v1'],
  ['v1 bound', 'old v1'],
  ['v2', 'v1'],
  ['v2+log', 'v2'],
  ['old v2+log', 'old v2'],
  ['two enclaves', 'v1'],
  ['vault', 'v1'],
  ['budgeted vault', 'logged vault'],
  ...LANES.map(({ name }) => [name, `old ${name}`] as const),
] as const

/**
 * Measures `POST /sign/digest` on PostgreSQL with every check on: rate, latency, processor time and write-ahead log per signature. With
 * `--against`, another checkout takes turns.
 */
export function benchSign(run: Run): Promise<Report[]> {
  return withScope(async (scope) => {
    const { against, connections, isQuick, lanes: word } = run
    const sliceMs = isQuick ? 600 : 1_500
    // After a checkpoint, PostgreSQL would write full pages to its log again.
    const bench = await openBench(scope, { checkpoint_timeout: '1d', max_wal_size: '16GB' })
    const { query } = scope.add(await connectPostgres(bench.postgres.url), ({ end }) => end())
    const lanes: Lane[] = []
    const start = async (name: string, changes: Changes, { vaults, isBound, at }: (typeof LANES)[number]) => {
      const chosen = at?.filter((each) => connections.includes(each))
      if (!name.includes(word) || chosen?.length === 0) return
      const measured = await bench.start(changes)
      const load = {
        ...measured,
        ...(vaults && { vaults: await createVaults(scope, measured, vaults) }),
        ...(isBound && (await bindSessions(measured))),
      }
      const isWhole = changes.enclaves === undefined
      lanes.push({
        name,
        load,
        ...(chosen && { connections: chosen }),
        ...(isWhole && { count: () => readBudget({ ...bench, query }, measured) }),
      })
    }
    for (const each of LANES) {
      await start(each.name, each.changes, each)
      if (against && each.isCompared) await start(`old ${each.name}`, { ...each.changes, checkout: against }, each)
    }
    const measured = await measureLanes(run, lanes, { connections, sliceMs, warmSlices: WARM_SLICES })
    const rows = measured.map(({ name, cells }): Row => {
      const beyond = cells['p50@1']?.map((ms) => ms - QUOTE_MS)
      return { name, cells: beyond === undefined ? cells : { ...cells, [LESS_QUOTE]: beyond } }
    })
    const most = Math.max(...connections)
    return [
      {
        suite: 'sign',
        setting:
          `\`POST /sign/digest\` with receipts 1 (v1) or 2 (v2): signatures per second (@), p50 and p99 in ms at that many connections; ` +
          `processor time and WAL per signature at ${most}. Quotes of ${QUOTE_MS} ms; two of three witnesses, ${DISTANCE_MS} ms away, cosign; ` +
          `${describeTurns(run, sliceMs)}${against === undefined ? '.' : `. Old: ${await readCommit(against)}.`}`,
        columns: [
          ...connections.map((each) => `@${each}`),
          ...['p50@1', LESS_QUOTE, 'p50@64', `p99@${most}`, BUDGET[0] ?? '', 'WAL B'],
        ],
        rows,
        ratios: RATIOS,
      },
      {
        suite: 'budget',
        setting: `Processor time per signature at ${most} connections, in µs, as Linux counts it for each thread.`,
        columns: BUDGET,
        rows: rows.filter(({ cells }) => BUDGET.some((name) => cells[name])),
      },
    ]
  })
}

/** Creates a vault for each user. Its only rule allows all measured transactions with one approval. */
async function createVaults(
  scope: Scope,
  { databaseUrl, stack, cookies }: Measured,
  kind: 'free' | 'logged' | 'budget',
): Promise<LoadedVault[]> {
  const passkey = createQuickPasskey({ seed: 1, rpId: 'vault.example' })
  const shared = { version: 1, approvers: [passkey.approver] } as const
  const policyLog = toPolicy(stack.witnesses)
  const policy =
    kind === 'budget'
      ? createPolicy({
          ...shared,
          log: { ...policyLog, origin: stack.logOrigins[0] },
          budgets: [{ chainId: 31337, token: null, limit: String(10n ** 24n), periodS: 3_600 }],
          rules: [
            {
              kind: 'spend',
              chainIds: [31337],
              payees: 'any',
              forms: ['coin'],
              approvals: 1,
              approvers: [0],
              session: true,
            },
          ],
        })
      : createPolicy({
          ...shared,
          log: kind === 'logged' ? policyLog : null,
          rules: [
            {
              kind: 'transaction',
              chainIds: 'any',
              to: 'any',
              maxFeeWei: '100000',
              maxValueWei: '1',
              approvals: 1,
              approvers: 'any',
            },
          ],
        })
  const { query } = scope.add(await openQuery(databaseUrl), ({ close }) => close())
  const vaults: LoadedVault[] = []
  for (const { sub } of createAccounts(cookies.length)) {
    const user = createUser(stack)
    await user.signIn(sub)
    const { address, policyHash } = await createVault({ post: user.post, query }, policy)
    const facts = { vaultAddress: address, policyHash: fromHex(policyHash), rule: 0, kind: 'transaction' } as const
    vaults.push({
      address,
      approve(digest) {
        const expiresMs = Date.now() + APPROVAL_MS
        return [passkey.approve({ ...facts, digest: fromHex(digest.slice(2)), expiresMs }, 0)]
      },
    })
  }
  return vaults
}

/** Signs each user in again, with a browser key. */
async function bindSessions({
  stack,
  cookies: earlier,
}: Measured): Promise<{ cookies: string[]; stampers: Stamper[] }> {
  const cookies: string[] = []
  const stampers: Stamper[] = []
  for (const { sub } of createAccounts(earlier.length)) {
    const { clientKey, stamp } = createClient()
    const user = createUser(stack)
    await user.signIn(sub, `?client_key=${clientKey}`)
    const { address } = (await (await user.get('/wallet/me')).json()) as { address: Hex }
    cookies.push(user.cookie)
    stampers.push((digest) =>
      stamp({ address, vault: null, kind: 'transaction', digest: fromHex(digest.slice(2)), issuedMs: Date.now() }),
    )
  }
  return { cookies, stampers }
}
