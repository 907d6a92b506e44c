import { setTimeout } from 'node:timers/promises'
import { formatAddCheckpoint, parseCheckpoint, parseNote, parseVkey, signNote } from '@countersign/log'
import { enclavePaths, type LogResponse, toHex } from '@countersign/protocol'
import { type BackendLog, startBackend } from '@countersign/testing'
import { createTx, createUser, type Scope, withScope } from '@countersign/testing/stack'
import { createSigner } from '../../packages/log/test/logs.ts'
import { callEnclave, createTestCoordinator } from '../../services/enclave/test/coordinator.ts'
import { createDatabase, openQuery } from '../openQuery.ts'
import { type Outcome, selectNames, type Trial, type TrialDeps, type Values, word } from '../trial.ts'
import { createLogSigner, createOtherCheckpoint } from './fork.ts'
import { judgeLog, toPolicy } from './judgeLog.ts'
import { readLogs, readNewest } from './readLogs.ts'
import { secretUse } from './secretUse.ts'

/** Gives the faults. */
type Attack = (deps: TrialDeps) => Promise<string[]>

/** How long is looked whether something is released that must not be. */
const WATCH_MS = 8_000
const READY_MS = 90_000

const attacks: Readonly<Record<string, Attack>> = {
  'rolled-back database': rolledBackDatabase,
  'second enclave on the same origin': secondEnclave,
  'origin that the witnesses do not know': unknownOrigin,
  'frontier made up by the coordinator': madeUpFrontier,
  'secret use of the spare origin': secretUse,
}

const options = { only: word('WORD', 'the attacks with this word in their names') }

export const logAttacks: Trial = {
  summary: `Attacks the log of a whole backend as its operator could: an old database, a second enclave, an origin without witnesses, a made-up
frontier. Nothing may be released, and a spare origin takes over by itself.`,
  options,
  example: '--only database',
  run: runAttacks,
}
type Options = Values<typeof options>

/** Runs each with a separate backend. */
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

/** A backend with a log, somebody who is signed in, and the faults that are found with them. */
async function open(scope: Scope, log: BackendLog) {
  const backend = scope.add(await startBackend({ env: { WORKER: 'off' }, log }), ({ stop }) => stop())
  await backend.untilReady(READY_MS)
  const user = createUser(backend)
  await user.signIn('alice')
  const faults: string[] = []
  let nonce = 0
  const ask = async () => (await user.sign(createTx(nonce++))).status
  return {
    backend,
    faults,
    ask,
    /** Signs so many; each that is refused is a fault. */
    async sign(count: number) {
      for (let each = 0; each < count; each++) {
        const status = await ask()
        if (status !== 200) faults.push(`an honest signature was answered with ${status}`)
      }
    },
    /** Asks for a while; each signature that comes is a fault. */
    watch: () =>
      repeat(250, async () => {
        if ((await ask()) === 200) faults.push('a signature was released')
      }),
    /** The logs of a database: how many signatures one has, and whether it agrees with the witnesses. */
    async openLogs(url = backend.databaseUrl) {
      const { query } = scope.add(await openQuery(url), ({ close }) => close())
      const find = async (origin: string) => (await readLogs(query)).find((each) => each.origin === origin)
      return {
        find,
        async expect(origin: string, expected: number) {
          const count = (await find(origin))?.signings.length ?? 0
          if (count !== expected) faults.push(`${origin} has ${count} signatures and not ${expected}`)
        },
        async judge(origin: string) {
          const rows = await find(origin)
          if (rows === undefined) return void faults.push(`${origin} was never begun`)
          const { witnesses } = backend
          const newest = await readNewest(witnesses, origin)
          faults.push(...judgeLog(rows, { policy: toPolicy(witnesses), newest }).faults)
        },
      }
    },
  }
}

/** For as long as it is watched whether something is released. */
async function repeat(everyMs: number, act: () => Promise<unknown>): Promise<void> {
  const until = performance.now() + WATCH_MS
  while (performance.now() < until) {
    await act()
    await setTimeout(everyMs)
  }
}

/** An operator brings an old database back: the witnesses have seen more of the log than it has. */
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
  say('nothing is released on the old database; now the witnesses know a spare')
  await backend.introduceLogs()
  await backend.untilReady(READY_MS)
  await sign(2)
  await logs.expect(first, 2)
  await logs.expect(spare, 2)
  await logs.judge(spare)
  return faults
}

/** Two enclaves with one root secret are told to write to the same log, each with a coordinator of its own. */
async function secondEnclave({ scope, say }: TrialDeps): Promise<string[]> {
  const origins = ['log.localhost/only']
  const [origin = ''] = origins
  const { backend, faults, ask, sign, openLogs } = await open(scope, { origins })
  await sign(2)
  const secondUrl = await backend.startSecondEnclave()
  const other = await createDatabase(backend.databaseUrl)
  const second = await backend.startSecond({ ENCLAVE_URL: secondUrl, DATABASE_URL: other })
  await repeat(500, async () => {
    const isReady = (await fetch(`${second.url}/health/ready`)).status === 200
    if (isReady) faults.push('a second history was opened')
    // Without a session nothing can be asked for; to open one would take the log.
    await createUser({ url: second.url })
      .signIn('bob')
      .then(
        () => faults.push('the second enclave opened a session'),
        () => {},
      )
  })
  await sign(2)
  await second.stop()
  say('with a database of its own it gets nothing; now on the same database')
  const third = await backend.startSecond({ ENCLAVE_URL: secondUrl })
  await repeat(100, ask)
  await third.stop()
  const logs = await openLogs()
  await logs.judge(origin)
  if (((await logs.find(origin))?.signings.length ?? 0) < 4) faults.push('signatures are lost')
  return faults
}

/** The witnesses were never told of the first origin: 404. */
async function unknownOrigin({ scope, say }: TrialDeps): Promise<string[]> {
  const origins = ['log.localhost/unknown', 'log.localhost/known']
  const [unknown = '', known = ''] = origins
  const { faults, sign, openLogs } = await open(scope, { origins, knownOrigins: [known] })
  say('the spare was taken')
  await sign(3)
  const logs = await openLogs()
  await logs.expect(unknown, 0)
  await logs.expect(known, 3)
  if (((await logs.find(unknown))?.notes.length ?? 0) > 0) faults.push('a log that nobody knows has notes')
  await logs.judge(known)
  return faults
}

/** A coordinator that the enclave admits tells it lies about where its log goes on, and about who cosigned it. */
async function madeUpFrontier({ scope, say }: TrialDeps): Promise<string[]> {
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

  /** Each must be refused, and nothing come of it. */
  async function refuse(name: string, path: string, body: object, statuses: readonly number[] = [403]) {
    const { status, body: answer } = await call(path, body)
    if (!statuses.includes(status)) faults.push(`${name} was answered with ${status}: ${JSON.stringify(answer)}`)
  }
  const start = (origin: string, checkpoint: string | null, hashes: readonly string[] = []) => ({
    start: { origin, checkpoint, hashes },
  })
  const stranger = createOtherCheckpoint(createSigner(first), 1)
  await refuse(
    'a checkpoint by another key',
    enclavePaths.log,
    start(first, stranger.checkpoint, [toHex(stranger.root)]),
  )
  await refuse('a frontier of another tree', enclavePaths.log, start(first, newest, toOtherHashes(newest)))
  await refuse('a frontier of the empty tree', enclavePaths.log, start(first, null, ['11'.repeat(32)]))
  await refuse('an origin of somebody else', enclavePaths.log, start('log.localhost/other', null))
  await refuse(
    'a session before the log is open',
    enclavePaths.openSession,
    { idToken: 'a.b.c', loginSecret: '11'.repeat(32) },
    [503],
  )

  // The empty tree is where a new log begins, so this is taken: the witnesses know better.
  const begun = (await call(enclavePaths.log, start(first, null))) as { status: number; body: LogResponse }
  const { bootId, log } = begun.body
  if (begun.status !== 200 || log === null || log.isOpen) return [...faults, 'the log was not begun, or opened at once']
  for (const { name, url } of witnesses) {
    for (const oldSize of [0, 1]) {
      const body = formatAddCheckpoint({ oldSize, proof: [], checkpoint: log.checkpoint })
      const response = await fetch(`${url}/add-checkpoint`, { method: 'POST', body })
      if (response.status === 200) faults.push(`${name} cosigned a second history`)
    }
  }
  const release = { bootId, checkpoint: log.checkpoint }
  await refuse('a release without cosignatures', enclavePaths.release, { ...release, cosignatures: [] })
  await refuse('cosignatures of another history', enclavePaths.release, { ...release, cosignatures: toLines(newest) })
  const forged = witnesses.map(({ vkey }) => {
    const name = parseVkey(vkey).name
    const timestampS = Math.floor(Date.now() / 1000)
    const signer = { ...createSigner(name, 'cosignature-ed25519'), timestampS }
    return toLines(signNote(parseNote(log.checkpoint).text, [signer]))[0] ?? ''
  })
  await refuse('cosignatures of others with their names', enclavePaths.release, { ...release, cosignatures: forged })
  // Even with the log's own key, which the coordinator does not have: the enclave never signed it.
  const key = await createLogSigner(rootSecretFile, first)
  const other = createOtherCheckpoint(key, 1)
  await refuse('a checkpoint of another tree', enclavePaths.release, {
    ...release,
    checkpoint: other.checkpoint,
    cosignatures: forged,
  })
  await refuse('a session still', enclavePaths.openSession, { idToken: 'a.b.c', loginSecret: '11'.repeat(32) }, [503])

  say('nothing was released; now an honest coordinator')
  await backend.startCoordinator()
  await backend.untilReady(READY_MS)
  await sign(2)
  for (const origin of origins) {
    await logs.expect(origin, 2)
    await logs.judge(origin)
  }
  return faults
}

/** As many as the tree of the checkpoint has, of another tree. */
function toOtherHashes(note: string): string[] {
  const { size } = parseCheckpoint(parseNote(note).text)
  return [...size.toString(2)].filter((bit) => bit === '1').map((_, index) => toHex(new Uint8Array(32).fill(index + 1)))
}

/** The lines of signatures below a note, without that of the log. */
function toLines(note: string): string[] {
  return note.split('\n').filter((line) => line.startsWith('\u2014 ') && !line.startsWith('\u2014 log.'))
}

/** As it is now. Nobody may be connected to it. */
const copyDatabase = (databaseUrl: string) => createDatabase(databaseUrl, new URL(databaseUrl).pathname.slice(1))
