import { setTimeout } from 'node:timers/promises'
import { createPolicy } from '@countersign/policy'
import { fromHex } from '@countersign/protocol'
import type { BackendLog } from '@countersign/testing'
import { createAccounts, createUser, type Scope, withScope } from '@countersign/testing/stack'
import { createVault } from '../createVault.ts'
import { startInterceptor } from '../interceptor.ts'
import { openQuery } from '../openQuery.ts'
import { createQuickPasskey } from '../quickPasskey.ts'
import { measureBudget } from './budget.ts'
import { type LoadedVault, measureInTurns, QUOTE_MS } from './load.ts'
import { readCommit } from './page.ts'
import { compareLanes, describeRounds, type Lane, type Report, type Run } from './report.ts'
import { type Bench, type Measured, openBench } from './stack.ts'

const CONNECTIONS = [1, 16, 64, 256]
/** Where the processor is the limit. */
const BUDGET_CONNECTIONS = 256
/** Code that ran a few thousand times runs several times faster than code that has just been loaded. */
const WARM_SLICES = 5
/** A quote then serves one of them: more callers would only wait longer for their turn. */
const MAX_SINGLE_CALLERS = 16
/** To each witness and back. */
const DISTANCE_MS = 20
const APPROVAL_MS = 12 * 3_600_000

/**
 * `POST /sign/digest` on PostgreSQL with quotes of 39 ms and every check on, and where the processor time goes. With `--against`
 * another checkout takes turns.
 */
export function benchSign(run: Run): Promise<Report[]> {
  return withScope(async (scope) => {
    const { against, isBudget, isQuick, rounds, say } = run
    const sliceMs = isQuick ? 600 : 1_500
    const bench = await openBench(scope)
    const own = await bench.start()
    const before = against === undefined ? undefined : await bench.start({ checkout: against })
    const subjects = before === undefined ? [own] : [own, before]
    const describe = async (how: string) =>
      `\`POST /sign/digest\` on PostgreSQL, quotes of ${QUOTE_MS} ms, every check on; client, provider, satellite, database, ` +
      `enclave and coordinator share the machine; ${how}` +
      (against === undefined ? '' : ` The other checkout is at ${await readCommit(against)}.`)
    const reports: Report[] = []
    if (isBudget) {
      const slices = isQuick ? 1 : WARM_SLICES
      for (let slice = 0; slice < slices; slice++) await measureInTurns(subjects, BUDGET_CONNECTIONS, sliceMs / 2)
    } else {
      const lanes: Lane[] = [
        { name: '', load: own },
        ...(before === undefined ? [] : [{ name: 'the other checkout', load: before, reference: 'all' as const }]),
        ...(await startLanes(scope, bench, own)),
      ]
      const how = { what: 'signatures', first: 'version 1', connections: CONNECTIONS, sliceMs, warmSlices: WARM_SLICES }
      const { rows, calms } = await compareLanes(run, lanes, how)
      reports.push({
        suite: 'sign',
        title: 'Signing through the coordinator',
        setting: await describe(
          `with a log, two of three witnesses must cosign, each ${DISTANCE_MS} ms away; ${describeRounds(run, sliceMs, calms)}`,
        ),
        rows,
      })
    }
    say('where the processor time goes')
    const how = { connections: BUDGET_CONNECTIONS, sliceMs, rounds }
    reports.push({
      suite: 'budget',
      title: 'Where the processor time of a signature goes',
      setting: await describe(
        `processor time for each signature at ${BUDGET_CONNECTIONS} connections, by Linux's count for each thread over ${2 * rounds} slices of ${sliceMs} ms.`,
      ),
      rows: await measureBudget(bench, subjects, how),
    })
    return reports
  })
}

/** What signing with receipts of version 1 is compared with. */
async function startLanes(scope: Scope, { start }: Bench, own: Measured): Promise<Lane[]> {
  const route: BackendLog['route'] = async ({ url }, inner) => {
    const far = await startInterceptor(url, async (_, forward) => {
      await setTimeout(DISTANCE_MS)
      return forward()
    })
    return inner.add(far, ({ stop }) => stop()).url
  }
  const single = await start({ limit: 1 })
  const second = 'receipts of version 2'
  return [
    { name: 'one quote each', load: single, reference: 'rate', maxConnections: MAX_SINGLE_CALLERS },
    { name: second, load: await start({ receipts: 2 }) },
    { name: `${second} with a log`, load: await start({ receipts: 2, log: { route } }), comparedWith: second },
    { name: 'vault, one approval each', load: { ...own, vaults: await createVaults(scope, own) } },
  ]
}

/** A vault for each user whose rules allow all that is measured, each signature with one approval. */
async function createVaults(scope: Scope, { databaseUrl, stack, cookies }: Measured): Promise<LoadedVault[]> {
  const passkey = createQuickPasskey({ seed: 1, rpId: 'vault.example' })
  const rule = { kind: 'transaction', chainIds: 'any', to: 'any', maxFeeWei: '100000', maxValueWei: '1' } as const
  const rules = [{ ...rule, approvals: 1 }]
  const policy = createPolicy({ version: 1, log: null, approvers: [passkey.approver], rules })
  const { query } = scope.add(await openQuery(databaseUrl), ({ close }) => close())
  const vaults: LoadedVault[] = []
  for (const { sub } of createAccounts(cookies.length)) {
    const user = createUser(stack)
    await user.signIn(sub)
    const { address, policyHash } = await createVault({ post: user.post, query }, policy)
    const facts = { vaultAddress: address, policyHash: fromHex(policyHash), kind: 'transaction' } as const
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
