import { setTimeout } from 'node:timers/promises'
import { formatAddCheckpoint, parseCheckpoint, parseNote, parseVkey, signNote } from '@countersign/log'
import { enclavePaths, type LogResponse, toHex } from '@countersign/protocol'
import { type BackendLog, startBackend } from '@countersign/testing'
import { createTx, createUser, type Scope, withScope } from '@countersign/testing/stack'
import { createSigner } from '../../packages/log/test/logs.ts'
import { callEnclave, createTestCoordinator } from '../../services/enclave/test/coordinator.ts'
import { createDatabase, openQuery } from '../openQuery.ts'
import { type Outcome, selectNames, type Trial, type TrialDeps, type Values, word } from '../trial.ts'
import { checkLog, toPolicy } from './checkLog.ts'
import { createLogSigner, createOtherCheckpoint } from './fork.ts'
import { readLogs, readNewest } from './readLogs.ts'
import { secretUse } from './secretUse.ts'

/** Returns the faults. */
type Attack = (deps: TrialDeps) => Promise<string[]>

/** How long to watch for released signatures. */
const WATCH_MS = 8_000
const READY_MS = 90_000

const attacks: Readonly<Record<string, Attack>> = {
  'rolled-back database': rolledBackDatabase,
  'second enclave on the same origin': secondEnclave,
  'origin unknown to the witnesses': unknownOrigin,
  'forged frontier from the coordinator': forgedFrontier,
  'secret use of the spare origin': secretUse,
}

const options = { only: word('WORD', 'run only the attacks with this text in their names') }

export const logAttacks: Trial = {
  summary: `Attacks the log of a whole backend as its operator could: an old database, a second enclave, an origin unknown to the witnesses, a forged
frontier, and secret use of the spare. Checks that nothing is released and that a spare origin takes over by itself.`,
  options,
  example: '--only database',
  run: runAttacks,
}
type Options = Values<typeof options>

/** Runs each attack on a new backend. */
export async function runAttacks({ say }: TrialDeps, { only }: Options): Promise<Outcome> {
  const names = selectNames(Object.keys(attacks), only)
  const faults: string[] = []
  for (const name of names) {
    const attack = attacks[name] as Attack
    const found = await withScope((scope) => attack({ scope, say: (line) => say(`${name}: ${line}`) }))
    say(`${name}: ${found.length} faults`)
    faults.push(...found.map((fault) => `${name}: ${fault}`))
  }
  return { faults, figures: { attacks: names } }
}

/** Starts a backend with a log and signs a user in. Collects the faults. */
async function open(scope: Scope, log: BackendLog) {
  const backend = scope.add(await startBackend({ env: { WORKER: 'off' }, log }), ({ stop }) => stop())
  await backend.untilReady(READY_MS)
  const user = createUser(backend)
  await user.signIn('alice')
  const faults: string[] = []
  let nonce = 0
  const requestSignature = async () => (await user.sign(createTx(nonce++))).status
  return {
    backend,
    faults,
    requestSignature,
    /** Requests this many signatures. A rejection is a fault. */
    async sign(count: number) {
      for (let each = 0; each < count; each++) {
        const status = await requestSignature()
        if (status !== 200) faults.push(`signature request failed with ${status}`)
      }
    },
    /** Requests signatures for a while. A signature is a fault. */
    watch: () =>
      repeat(250, async () => {
        if ((await requestSignature()) === 200) faults.push('a signature was released')
      }),
    /** Reads the logs of a database, to check their number of signatures and compare them with the witnesses. */
    async openLogs(url = backend.databaseUrl) {
      const { query } = scope.add(await openQuery(url), ({ close }) => close())
      const find = async (origin: string) => (await readLogs(query)).find((each) => each.origin === origin)
      return {
        find,
        async expect(origin: string, expected: number) {
          const count = (await find(origin))?.signings.length ?? 0
          if (count !== expected) faults.push(`${origin} has ${count} signatures, expected ${expected}`)
        },
        async check(origin: string) {
          const rows = await find(origin)
          if (rows === undefined) return void faults.push(`log ${origin} doesn't exist`)
          const { witnesses } = backend
          const newest = await readNewest(witnesses, origin)
          faults.push(...checkLog(rows, { policy: toPolicy(witnesses), newest }).faults)
        },
      }
    },
  }
}

/** Repeats an action for `WATCH_MS`. */
async function repeat(everyMs: number, act: () => Promise<unknown>): Promise<void> {
  const until = performance.now() + WATCH_MS
  while (performance.now() < until) {
    await act()
    await setTimeout(everyMs)
  }
}

/** The operator restores an old database: the witnesses have seen more of the log than it contains. */
async function rolledBackDatabase({ scope, say }: TrialDeps): Promise<string[]> {
  const origins = ['log.localhost/first', 'log.localhost/spare']
  const [first = '', spare = ''] = origins
  const { backend, faults, sign, watch, openLogs } = await open(scope, { origins, knownOrigins: [first] })
  await sign(2)
  await backend.stopCoordinator('SIGTERM')
  const old = await copyDatabase(backend.databaseUrl)
  await backend.startCoordinator()
  await backend.untilReady(READY_MS)
  await sign(3)
  await backend.stopCoordinator('SIGTERM')
  await backend.stopEnclave('SIGKILL')
  await backend.startEnclave()
  await backend.startCoordinator({ DATABASE_URL: old })
  await watch()
  const logs = await openLogs(old)
  await logs.expect(first, 2)
  say('nothing released on the old database; adding a spare origin to the witnesses')
  await backend.introduceLogs()
  await backend.untilReady(READY_MS)
  await sign(2)
  await logs.expect(first, 2)
  await logs.expect(spare, 2)
  await logs.check(spare)
  return faults
}

/** Two enclaves with one root secret are configured with the same log, each with its own coordinator. */
async function secondEnclave({ scope, say }: TrialDeps): Promise<string[]> {
  const origins = ['log.localhost/only']
  const [origin = ''] = origins
  const { backend, faults, requestSignature, sign, openLogs } = await open(scope, { origins })
  await sign(2)
  const secondUrl = await backend.startSecondEnclave()
  const other = await createDatabase(backend.databaseUrl)
  const second = await backend.startSecond({ ENCLAVE_URL: secondUrl, DATABASE_URL: other })
  await repeat(500, async () => {
    const isReady = (await fetch(`${second.url}/health/ready`)).status === 200
    if (isReady) faults.push('the second enclave opened the log')
    // Signing needs a session, and opening one needs an open log.
    await createUser({ url: second.url })
      .signIn('bob')
      .then(
        () => faults.push('the second enclave opened a session'),
        () => {},
      )
  })
  await sign(2)
  await second.stop()
  say('nothing released with a separate database; trying the same database')
  const third = await backend.startSecond({ ENCLAVE_URL: secondUrl })
  await repeat(100, requestSignature)
  await third.stop()
  const logs = await openLogs()
  await logs.check(origin)
  if (((await logs.find(origin))?.signings.length ?? 0) < 4) faults.push('signatures were lost')
  return faults
}

/** The witnesses don't know the first origin and return 404. */
async function unknownOrigin({ scope, say }: TrialDeps): Promise<string[]> {
  const origins = ['log.localhost/unknown', 'log.localhost/known']
  const [unknown = '', known = ''] = origins
  const { faults, sign, openLogs } = await open(scope, { origins, knownOrigins: [known] })
  say('the enclave took the spare origin')
  await sign(3)
  const logs = await openLogs()
  await logs.expect(unknown, 0)
  await logs.expect(known, 3)
  if (((await logs.find(unknown))?.notes.length ?? 0) > 0) faults.push('the unknown log has notes')
  await logs.check(known)
  return faults
}

/** A coordinator admitted by the enclave lies about the log's frontier and its cosignatures. */
async function forgedFrontier({ scope, say }: TrialDeps): Promise<string[]> {
  const origins = ['log.localhost/first', 'log.localhost/spare']
  const [first = ''] = origins
  const { backend, faults, sign, openLogs } = await open(scope, { origins })
  const { enclaveUrl, witnesses, rootSecretFile } = backend
  await sign(2)
  await backend.stopCoordinator('SIGTERM')
  await backend.stopEnclave('SIGKILL')
  await backend.startEnclave()
  const logs = await openLogs()
  const newest = (await logs.find(first))?.notes.at(-1)?.note ?? ''
  const liar = createTestCoordinator()
  const call = (path: string, body: object) => callEnclave(enclaveUrl, liar, path, body)

  /** Expects the enclave to reject a request. */
  async function expectRejection(name: string, path: string, body: object, statuses: readonly number[] = [403]) {
    const { status, body: answer } = await call(path, body)
    if (!statuses.includes(status)) faults.push(`${name}: expected rejection, got ${status}: ${JSON.stringify(answer)}`)
  }
  const start = (origin: string, checkpoint: string | null, hashes: readonly string[] = []) => ({
    start: { origin, checkpoint, hashes },
  })
  const foreign = createOtherCheckpoint(createSigner(first), 1)
  await expectRejection(
    'a checkpoint signed by another key',
    enclavePaths.log,
    start(first, foreign.checkpoint, [toHex(foreign.root)]),
  )
  await expectRejection('a frontier of another tree', enclavePaths.log, start(first, newest, toOtherHashes(newest)))
  await expectRejection('a frontier for an empty tree', enclavePaths.log, start(first, null, ['11'.repeat(32)]))
  await expectRejection('an origin of another service', enclavePaths.log, start('log.localhost/other', null))
  await expectRejection(
    'a session before the log is open',
    enclavePaths.openSession,
    { idToken: 'a.b.c', loginSecret: '11'.repeat(32) },
    [503],
  )

  // The enclave accepts the empty tree, because a new log starts there. But the witnesses have a larger tree and must not cosign.
  const begun = (await call(enclavePaths.log, start(first, null))) as { status: number; body: LogResponse }
  const { bootId, log } = begun.body
  if (begun.status !== 200 || log === null || log.isOpen)
    return [...faults, 'the log was not started, or opened without witnesses']
  for (const { name, url } of witnesses) {
    for (const oldSize of [0, 1]) {
      const body = formatAddCheckpoint({ oldSize, proof: [], checkpoint: log.checkpoint })
      const response = await fetch(`${url}/add-checkpoint`, { method: 'POST', body })
      if (response.status === 200) faults.push(`${name} cosigned a second history`)
    }
  }
  const release = { bootId, checkpoint: log.checkpoint }
  await expectRejection('a release without cosignatures', enclavePaths.release, { ...release, cosignatures: [] })
  await expectRejection('cosignatures of another history', enclavePaths.release, {
    ...release,
    cosignatures: toLines(newest),
  })
  const forged = witnesses.map(({ vkey }) => {
    const name = parseVkey(vkey).name
    const timestampS = Math.floor(Date.now() / 1000)
    const signer = { ...createSigner(name, 'cosignature-ed25519'), timestampS }
    return toLines(signNote(parseNote(log.checkpoint).text, [signer]))[0] ?? ''
  })
  await expectRejection("forged cosignatures with the witnesses' names", enclavePaths.release, {
    ...release,
    cosignatures: forged,
  })
  // Signed by the log's own key, which the coordinator doesn't have. The enclave must still reject a checkpoint that it didn't sign itself.
  const key = await createLogSigner(rootSecretFile, first)
  const other = createOtherCheckpoint(key, 1)
  await expectRejection('a checkpoint of another tree', enclavePaths.release, {
    ...release,
    checkpoint: other.checkpoint,
    cosignatures: forged,
  })
  await expectRejection(
    'a session while the log is not open',
    enclavePaths.openSession,
    { idToken: 'a.b.c', loginSecret: '11'.repeat(32) },
    [503],
  )

  say('nothing released; starting an honest coordinator')
  await backend.startCoordinator()
  await backend.untilReady(READY_MS)
  await sign(2)
  for (const origin of origins) {
    await logs.expect(origin, 2)
    await logs.check(origin)
  }
  return faults
}

/** As many hashes as the checkpoint's frontier has, but of another tree. */
function toOtherHashes(note: string): string[] {
  const { size } = parseCheckpoint(parseNote(note).text)
  return [...size.toString(2)].filter((bit) => bit === '1').map((_, index) => toHex(new Uint8Array(32).fill(index + 1)))
}

/** The signature lines of a note, except the log's. */
function toLines(note: string): string[] {
  return note.split('\n').filter((line) => line.startsWith('\u2014 ') && !line.startsWith('\u2014 log.'))
}

/** Copies the database. It must have no connections. */
const copyDatabase = (databaseUrl: string) => createDatabase(databaseUrl, new URL(databaseUrl).pathname.slice(1))
