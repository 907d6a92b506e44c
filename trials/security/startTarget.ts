import { readResidentMib } from '@countersign/testing'
import { APP_ORIGIN } from '@countersign/testing/launcher'
import { createTx, createUser, type Scope, type TestUser } from '@countersign/testing/stack'
import { type Backend, startBackend } from '../../services/coordinator/test/backend.ts'
import { type Caller, createCaller } from './createCaller.ts'

/** A whole backend of real processes with signed-in users, as the target of attacks. */
export type Target = {
  backend: Backend
  url: string
  port: number
  /** The only allowed origin. */
  app: string
  /** Can send headers that no browser would send. */
  call: Caller['call']
  /** Signed-in users with wallets: an honest one and an attacker. */
  alice: TestUser
  mallory: TestUser
  query(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** Number of rows by table. */
  readState(): Promise<State>
  /** A transaction that wasn't signed before. */
  nextTx(): ReturnType<typeof createTx>
  /** Resident memory of the coordinator. */
  memoryMb(): Promise<number>
  /** Restarts the coordinator with these environment variables, without those of earlier restarts. Does nothing if they are unchanged. */
  restart(env?: Record<string, string>): Promise<void>
}

/** Above the concurrency of all attacks. */
const CONNECTIONS = 50

type State = Record<(typeof TABLES)[number], number>

const TABLES = ['users', 'wallets', 'sessions', 'logins', 'signings', 'proofs', 'batches'] as const

export async function startTarget({ add }: Pick<Scope, 'add'>): Promise<Target> {
  const backend = add(await startBackend(), ({ stop }) => stop())
  const [alice, mallory] = [createUser(backend), createUser(backend)]
  await alice.signIn('alice')
  await mallory.signIn('bob')
  const port = Number(new URL(backend.url).port)
  const caller = add(createCaller({ port, connections: CONNECTIONS }), async ({ close }) => close())
  let current = '{}'
  let nonce = 0
  const query: Target['query'] = (text, values) => backend.withDatabase((run) => run(text, values))
  return {
    backend,
    url: backend.url,
    port,
    app: APP_ORIGIN,
    call: caller.call,
    alice,
    mallory,
    query,
    async readState() {
      const counts = TABLES.map((table) => `(select count(*)::int from ${table}) as ${table}`)
      const [row] = await query(`select ${counts.join(', ')}`)
      return row as State
    },
    nextTx() {
      nonce += 1
      return createTx(nonce)
    },
    memoryMb: async () => Math.round(await readResidentMib(backend.pids().coordinator)),
    async restart(env = {}) {
      const wanted = JSON.stringify(env)
      if (wanted === current) return
      await backend.stopCoordinator('SIGTERM')
      await backend.startCoordinator(env)
      current = wanted
    },
  }
}
