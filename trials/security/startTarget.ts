import { readResidentMib } from '@countersign/testing'
import { APP_ORIGIN } from '@countersign/testing/launcher'
import { createTx, createUser, type Scope, type TestUser } from '@countersign/testing/stack'
import { type Backend, startBackend } from '../../services/coordinator/test/backend.ts'
import { type Caller, createCaller } from './createCaller.ts'

/** The whole backend as real processes, with people signed in: what the attacks are made on. */
export type Target = {
  backend: Backend
  url: string
  port: number
  /** The one allowed origin. */
  app: string
  /** With headers that no browser would send. */
  call: Caller['call']
  /** Signed in, with wallets: the honest one, and the one who attacks. */
  alice: TestUser
  mallory: TestUser
  query(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** Rows by table, and the number of the enclave's last batch that is on record. */
  readState(): Promise<State>
  /** A transaction that nobody has signed yet. */
  nextTx(): ReturnType<typeof createTx>
  /** Resident memory of the coordinator. */
  memoryMb(): Promise<number>
  /** With these keys in its environment, and no others of earlier restarts. Where they are the same nothing is done. */
  restart(env?: Record<string, string>): Promise<void>
}

/** More than any attack makes calls at once. */
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
