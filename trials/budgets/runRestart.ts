import { hash } from 'node:crypto'
import { decodeLogEntry, encodeLogEntry, formatCheckpoint, signNote, toVkey } from '@countersign/log'
import { toStateHex } from '@countersign/policy'
import { hashTree, hashTreeLeaf } from '@countersign/protocol'
import { createHexTable } from '@countersign/service/hexTable'
import { startBackend } from '@countersign/testing'
import { createTx, createUser, withScope } from '@countersign/testing/stack'
import { createLogStore } from '../../services/coordinator/src/store/logs.ts'
import { openDatabase } from '../../services/coordinator/src/store/openDatabase.ts'
import { createLogSigner } from '../log/fork.ts'
import { readLogs } from '../log/readLogs.ts'
import { openQuery } from '../openQuery.ts'
import { count, type Outcome, type Trial, type TrialDeps, type Values } from '../trial.ts'

const READY_MS = 90_000
const options = { states: count(100_000, 'vaults with budgets', { most: 131_072 }) }

export const budgetsRestart: Trial = {
  summary: 'Measures a restart of enclave and coordinator, without budgets and with the states of this many vaults.',
  options,
  example: '--states 1000',
  run: runRestart,
}

export async function runRestart({ scope, say }: TrialDeps, { states }: Values<typeof options>): Promise<Outcome> {
  const backend = scope.add(await startBackend({ env: { WORKER: 'off' }, log: {} }), ({ stop }) => stop())
  await backend.untilReady(READY_MS)
  const user = createUser(backend)
  await user.signIn('alice')
  const sign = async (nonce: number) => (await user.sign(createTx(nonce))).status

  async function restart(whileStopped: () => Promise<void> = async () => {}): Promise<number> {
    await backend.stopCoordinator('SIGTERM')
    await backend.stopEnclave('SIGKILL')
    await whileStopped()
    const startedAt = performance.now()
    await backend.startEnclave()
    await backend.startCoordinator()
    await backend.untilReady(READY_MS)
    return (performance.now() - startedAt) / 1000
  }

  const statuses = [await sign(0)]
  const before = await restart()
  statuses.push(await sign(1))
  say(`${before.toFixed(1)} s without states`)
  const after = await restart(() => addStates(backend, states))
  statuses.push(await sign(2))
  say(`${after.toFixed(1)} s with ${states} states`)
  return {
    faults: statuses.every((status) => status === 200) ? [] : [`signing gave ${statuses.join()}`],
    figures: { states, secondsBefore: before, secondsAfter: after },
  }
}

/** Appends the root of a table with this many rows to the log, signed with the log's own key. */
async function addStates(
  { databaseUrl, rootSecretFile, logOrigins }: Awaited<ReturnType<typeof startBackend>>,
  size: number,
): Promise<void> {
  const [origin = ''] = logOrigins
  const table = createHexTable()
  const states = Array.from({ length: size }, (_, row) => {
    const keyId = hash('sha256', `${row}`).slice(0, 32)
    const counters = [{ window: 20_000, spent: BigInt(row) }]
    const state = toStateHex({ keyId, random: keyId, sequence: 1, revoked: 0, counters })
    table.set(row, state)
    return { row, state }
  })
  await withScope(async (scope) => {
    const { query } = scope.add(await openQuery(databaseUrl), ({ close }) => close())
    const rows = (await readLogs(query)).find((log) => log.origin === origin)
    if (rows === undefined) throw new Error('the log is missing')
    const { entries } = rows
    const added = encodeLogEntry({ kind: 'table', rows: size, root: table.computeRoot(), timeMs: Date.now() })
    const boot = entries.map(decodeLogEntry).findLast((entry) => entry.kind === 'boot')
    const root = hashTree([...entries, added].map(hashTreeLeaf))
    const signer = await createLogSigner(rootSecretFile, origin)
    const text = formatCheckpoint({ origin, size: entries.length + 1, root, extensions: [] })
    const { db, close } = await openDatabase({ databaseUrl })
    scope.add(db, close)
    await createLogStore({ db }).appendLog({
      origin,
      key: toVkey(signer.key),
      bootId: boot?.kind === 'boot' ? boot.bootId : '',
      from: entries.length,
      entries: [added],
      checkpoint: { size: entries.length + 1, root, note: signNote(text, [signer]) },
      claims: [],
      states,
      claimMs: 0,
      now: Date.now(),
    })
  })
}
