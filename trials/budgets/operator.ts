import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  appendLeaves,
  createConsistencyProof,
  createInclusionProof,
  createLeafReader,
  emptyFrontier,
  formatAddCheckpoint,
  parseCheckpoint,
  parseNote,
  parseVkey,
} from '@countersign/log'
import {
  type AppendedEntries,
  type AttestResponse,
  enclavePaths,
  fromHex,
  hashTreeLeaf,
  type LoggedItemsResponse,
  type LogRequest,
  type LogResponse,
  type OpenSessionResponse,
  type ReleaseResponse,
  type SignedStatement,
  type SignItem,
  type SignItemError,
  toHex,
  type VaultResponse,
} from '@countersign/protocol'
import { createWitnessFolders, startWitness, toPath, writeLogList } from '@countersign/testing/launcher'
import type { Scope } from '@countersign/testing/stack'
import { callEnclave, createTestCoordinator } from '../../services/enclave/test/coordinator.ts'
import { startEnclave } from '../../services/enclave/test/enclaveProcess.ts'
import { startTestIssuer } from '../../services/enclave/test/issuer.ts'

export const ORIGINS = ['log.example/a', 'log.example/b'] as const
const QUORUM = 3
/** Entries of a log, and the states of its table, as an operator's database has them. */
export type Database = { entries: readonly string[]; states: readonly string[]; note: string | null }

/** What one call for signatures gave: statements, or codes. */
export type Signed = { released: SignedStatement[]; codes: Record<string, number> }

export const emptyDatabase: Database = { entries: [], states: [], note: null }

export type Operator = Awaited<ReturnType<typeof startOperator>>
export type Enclave = Awaited<ReturnType<Operator['startEnclave']>>

/** An operator with enclave and witness processes, who writes the coordinator's part and keeps every version of the database. */
export async function startOperator({ scope, isCounting }: { scope: Scope; isCounting: boolean }) {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-budgets-'))
  scope.add(folder, () => rm(folder, { recursive: true }))
  const issuer = scope.add(await startTestIssuer(), ({ close }) => close())
  const coordinator = createTestCoordinator()
  const folders = await createWitnessFolders(join(folder, 'witnesses'), 4)
  const env = {
    ROOT_SECRET: `file:${join(folder, 'root-secret')}`,
    OIDC_ISSUERS: `${issuer.url}=${issuer.audience}`,
    MOCK_QUOTE_LATENCY_MS: '5',
    LOG_ORIGINS: ORIGINS.join(),
    LOG_QUORUM: String(QUORUM),
    LOG_WITNESSES: folders.map(({ vkey, name }) => `${vkey}@https://${name}.example`).join(),
    ...(!isCounting && { NODE_OPTIONS: `--import ${toPath('trials/budgets/withoutCounting.ts')}` }),
  }
  /** What the witnesses have last cosigned, by origin. */
  const newest = new Map<string, Database>()
  /** The size that each witness has last cosigned, by origin. */
  const witnesses: { url: string; sizes: Map<string, number> }[] = []

  async function callAt<Answer>(url: string, path: string, request: unknown, timeMs: number) {
    const { status, body } = await callEnclave(url, coordinator, path, request, timeMs)
    if (status !== 200) throw new Error((body as { error: { code: string } }).error.code)
    return body as Answer
  }

  /** Asks all witnesses. Throws if fewer than a quorum cosign. */
  async function cosign(database: Database, checkpoint: string) {
    const { entries } = database
    const { origin, size } = parseCheckpoint(parseNote(checkpoint).text)
    const read = createLeafReader(entries.map((entry) => hashTreeLeaf(fromHex(entry))))
    const lines = await Promise.all(
      witnesses.map(async (witness) => {
        const oldSize = Math.min(witness.sizes.get(origin) ?? 0, size)
        const proof = createConsistencyProof(read, { oldSize, size })
        const body = formatAddCheckpoint({ oldSize, proof, checkpoint })
        const response = await fetch(`${witness.url}/add-checkpoint`, { method: 'POST', body })
        const text = await response.text()
        if (response.status !== 200) return undefined
        witness.sizes.set(origin, size)
        return text.split('\n')[0]
      }),
    )
    const cosignatures = lines.filter((line) => line !== undefined)
    if (cosignatures.length < QUORUM) throw new Error('not_cosigned')
    newest.set(origin, database)
    return { checkpoint, cosignatures }
  }

  async function startOne({ shiftMs = 0 } = {}) {
    const enclave = scope.add(await startEnclave({ ...env, ...(shiftMs !== 0 && toShift(shiftMs)) }), ({ kill }) =>
      kill('SIGKILL'),
    )
    // The enclave knows the time of the issuers, so a clock set back only stops its own.
    const now = () => Date.now() + Math.max(0, shiftMs)
    const call = <Answer>(path: string, request: unknown) => callAt<Answer>(enclave.url, path, request, now())
    const attested = await call<AttestResponse>(enclavePaths.attest, { nonce: '11'.repeat(32) })
    let database = emptyDatabase

    function store({ from, entries, states, checkpoint }: AppendedEntries) {
      const next = [...database.states]
      for (const { row, state } of states) next[row] = state
      const all = [...database.entries]
      for (const [index, entry] of entries.entries()) all[from + index] = entry
      // Answers may arrive in another order.
      const isNewest = from + entries.length >= database.entries.length
      database = { entries: all, states: next, note: isNewest ? checkpoint : database.note }
    }

    async function release(wanted: object) {
      const request = { bootId: attested.bootId, ...wanted }
      return (await call<ReleaseResponse>(enclavePaths.release, request)).statements
    }

    return {
      now,
      /** What the operator has stored, at any moment. */
      get database() {
        return database
      },
      attested,
      call,
      kill: () => enclave.kill('SIGKILL'),
      release,
      /** Starts the log from a database, perhaps with the states of another one. Throws the code of a refusal. */
      async open(given: Database, { states = given.states, origin = ORIGINS[0] as string } = {}) {
        database = { ...given, states }
        if (states.length > 0) await call(enclavePaths.log, { states: { from: 0, rows: states } } satisfies LogRequest)
        const { log } = await call<LogResponse>(enclavePaths.log, { start: { origin, ...toStart(given) } })
        if (log === null) throw new Error('not_started')
        store(log)
        await release(await cosign(database, log.checkpoint))
      },
      openSession: async (subject: string) =>
        call<OpenSessionResponse>(enclavePaths.openSession, await issuer.login(subject)),
      deriveVault: ({ sid, grant }: OpenSessionResponse, policy: string) =>
        call<VaultResponse>(enclavePaths.vault, { sid, grant, policy }),
      /** A fresh cosignature of the newest checkpoint, so that the enclave knows the time. */
      refresh: async () => release(await cosign(database, database.note ?? '')),
      /** Signs, and releases unless told not to. */
      async sign(
        items: readonly (SignItem | object)[],
        { policies, isReleased = true }: { policies: readonly string[]; isReleased?: boolean },
      ): Promise<Signed & { leaves: string[]; finish(): Promise<SignedStatement[]> }> {
        const { results, batches, log } = await call<LoggedItemsResponse>(enclavePaths.sign, { items, policies })
        const codes: Record<string, number> = {}
        const leaves: string[] = []
        for (const result of results) {
          if ('error' in result) {
            const code = toCode(result)
            codes[code] = (codes[code] ?? 0) + 1
          } else leaves.push(batches[result.batch]?.leaves[result.leafIndex] ?? '')
        }
        if (log !== null) store(log)
        const finish = async () => {
          if (log === null) return []
          const note = await cosign(database, database.note ?? '')
          return (await release({ ...note, leaves })).filter((statement) => statement !== null)
        }
        return { released: isReleased ? await finish() : [], codes, leaves, finish }
      },
    }
  }

  // Witnesses need the log's keys, which the enclave attests.
  const first = await startOne()
  const logsFile = join(folder, 'logs')
  await writeLogList(logsFile, first.attested.logs?.keys ?? [])
  for (const one of folders) {
    const witness = scope.add(startWitness({ ...one, logsFile }), ({ kill }) => kill('SIGKILL'))
    witnesses.push({ url: String((await witness.started).address), sizes: new Map() })
  }
  await first.kill()

  return {
    issuer,
    policyLog: {
      origin: ORIGINS[0],
      witnesses: folders.map(({ vkey }) => toHex(parseVkey(vkey).publicKey)).toSorted(),
      quorum: QUORUM,
    },
    startEnclave: startOne,
    cosign: (database: Database) => cosign(database, database.note ?? ''),
    findNewest: (origin: string = ORIGINS[0]) => newest.get(origin) ?? emptyDatabase,
  }
}

function toShift(shiftMs: number) {
  return { NODE_OPTIONS: `--import ${toPath('trials/budgets/withShiftedClock.ts')}`, CLOCK_SHIFT_MS: String(shiftMs) }
}

function toCode(result: SignItemError): string {
  return result.error === 'approval_invalid' ? result.reason : result.error
}

/** Where a log continues. */
function toStart({ entries, note }: Database): Omit<NonNullable<LogRequest['start']>, 'origin'> {
  if (note === null) return { checkpoint: null, hashes: [] }
  const leaves = entries.map((entry) => hashTreeLeaf(fromHex(entry)))
  const size = leaves.length
  const proof = createInclusionProof(createLeafReader(leaves), { index: size - 1, size })
  const path = proof.slice(0, Math.log2(size & -size)).map(toHex)
  const { hashes } = appendLeaves(emptyFrontier, leaves)
  return { checkpoint: note, hashes: hashes.map(toHex), table: { entry: entries.at(-1) ?? '', path } }
}
