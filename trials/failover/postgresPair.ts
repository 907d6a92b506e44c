import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { appendFile, chmod, chown, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import {
  type Account,
  connectPostgres,
  findAccount,
  findFreePorts,
  killServer,
  type PostgresClient,
  queryPostgres,
  startServer,
  stopServer,
} from '@countersign/testing'
import { listen, type Scope } from '@countersign/testing/stack'
import type { Authority } from '../cluster/authority.ts'
import { type Relay, startRelay } from '../cluster/relay.ts'
import { until } from '../until.ts'

/** `sync`: commits wait for the standby. */
export type Mode = 'sync' | 'async'

export type PostgresPair = Awaited<ReturnType<typeof startPostgresPair>>

type Server = {
  name: 'a' | 'b'
  folder: string
  port: number
  /** The standby replicates through this relay. */
  wire: Relay
  /** Answers 200 if the server is the primary. */
  rolePort: number
  process: Awaited<ReturnType<typeof startServer>> | undefined
}

const NATIVE = '/usr/lib/postgresql'
const TOOLS = ['postgres', 'initdb', 'pg_basebackup', 'pg_dump', 'pg_restore', 'pg_verifybackup']
const DATABASE = 'countersign'
/** The superuser administers the servers, the owner has the database. */
const SUPERUSER = 'postgres'
const OWNER = 'countersign'
const REPLICATOR = 'replicator'
const READY_MS = 30_000
/** A server that doesn't answer within this time counts as down. */
const ROLE_MS = 2_000

/** Finds the newest PostgreSQL that Debian's packages installed with all tools. */
export async function findPostgres(): Promise<string | undefined> {
  const versions = await readdir(NATIVE).catch(() => [])
  for (const version of versions.sort((one, other) => Number(other) - Number(one))) {
    const found = await Promise.allSettled(TOOLS.map((tool) => stat(join(NATIVE, version, 'bin', tool))))
    if (found.every(({ status }) => status === 'fulfilled')) return join(NATIVE, version)
  }
  return undefined
}

/** Starts a primary and its standby on loopback. `pg_hba.conf` allows TLS connections only, with SCRAM passwords. */
export async function startPostgresPair(
  { add, createFolder }: Scope,
  { native, authority, mode }: { native: string; authority: Authority; mode: Mode },
) {
  const account = await findAccount()
  const root = await createFolder()
  await chmod(root, 0o755)
  const password = randomBytes(16).toString('hex')
  const run = (tool: string, args: readonly string[]) =>
    promisify(execFile)(join(native, 'bin', tool), [...args], {
      ...account,
      cwd: root,
      env: { PATH: process.env.PATH ?? '', HOME: root, PGPASSWORD: password },
      maxBuffer: 1 << 26,
    })
  const authorityFile = join(root, 'authority.pem')
  await writeFile(authorityFile, authority.pem)
  const query = toQuery(authorityFile)
  const archive = join(root, 'archive')
  await mkdir(archive)
  await own(archive, account)
  const toUrl = (user: string, port: number, database: string) =>
    `postgres://${user}:${password}@localhost:${port}/${database}${query}`

  const ports = await findFreePorts(2)
  const servers = await Promise.all((['a', 'b'] as const).map((name, index) => createOne(name, ports[index] ?? 0)))
  let [primary, standby] = servers as [Server, Server]

  async function createOne(name: Server['name'], port: number): Promise<Server> {
    const folder = join(root, name)
    await mkdir(folder, { mode: 0o755 })
    await own(folder, account)
    const wire = add(await startRelay({ port }), (each) => each.stop())
    const isPrimary = createRoleServer(toUrl(SUPERUSER, port, 'postgres'))
    const { port: rolePort } = add(await listen(isPrimary), (each) => each.stop())
    return { name, folder, port, wire, rolePort, process: undefined }
  }

  async function start(server: Server) {
    const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=']
    server.process = await startServer({
      native,
      folder: server.folder,
      port: server.port,
      account,
      settings: settings.flatMap((setting) => ['-c', setting]),
    })
  }

  /** Runs a statement as superuser. */
  const runSql = <Row extends object>({ port }: Pick<Server, 'port'>, text: string) =>
    queryPostgres<Row>(toUrl(SUPERUSER, port, 'postgres'), text)

  /** Replaces a server's data with a copy of the primary and starts it as standby. */
  async function follow(server: Server) {
    for (const { wire } of servers) wire.restore()
    await rm(join(server.folder, 'data'), { recursive: true, force: true })
    const source = `host=localhost port=${primary.wire.port} user=${REPLICATOR} sslmode=verify-full sslrootcert=${authorityFile} application_name=${server.name}`
    await run('pg_basebackup', ['-d', source, '-D', join(server.folder, 'data'), '-R', '-X', 'stream', '-c', 'fast'])
    // After promotion it has no standby and must not wait for one.
    await appendFile(join(server.folder, 'data/postgresql.auto.conf'), "synchronous_standby_names = ''\n")
    await start(server)
    await protect()
  }

  /** Resolves when the standby has caught up. In `sync` mode commits wait for it from then on. */
  async function protect() {
    const names = mode === 'sync' ? '*' : ''
    await runSql(primary, `alter system set synchronous_standby_names = '${names}'`)
    await runSql(primary, 'select pg_reload_conf()')
    const wanted = mode === 'sync' ? 'sync' : 'async'
    await untilReady(async () => {
      const [state] = await runSql<{ isThere: boolean }>(
        primary,
        `select count(*) = 1 as "isThere" from pg_stat_replication
        where state = 'streaming' and sync_state = '${wanted}' and replay_lsn >= pg_current_wal_lsn() - 65536`,
      )
      return state?.isThere === true
    }, 'standby did not catch up in time')
  }

  const end = async () => {
    for (const server of [standby, primary]) if (server.process) await stopServer(server.process)
  }
  add(end, (each) => each())

  const passwordFile = join(root, 'password')
  await writeFile(passwordFile, password, { mode: 0o600 })
  await own(passwordFile, account)
  const flags = [`--username=${SUPERUSER}`, `--pwfile=${passwordFile}`, '--auth=scram-sha-256', '--encoding=UTF8']
  await run('initdb', ['-D', join(primary.folder, 'data'), ...flags, '--locale=C', '--data-checksums'])
  const { certificate, key } = await authority.issue()
  for (const [name, text] of Object.entries({
    'server.crt': certificate,
    'server.key': key,
    'pg_hba.conf': `hostssl all all 127.0.0.1/32 scram-sha-256\nhostssl replication ${REPLICATOR} 127.0.0.1/32 scram-sha-256\n`,
  })) {
    const path = join(primary.folder, 'data', name)
    await writeFile(path, text, { mode: 0o600 })
    await own(path, account)
  }
  await appendFile(
    join(primary.folder, 'data/postgresql.conf'),
    `max_connections = 200\nssl = on\nssl_min_protocol_version = 'TLSv1.2'\nwal_keep_size = '512MB'\narchive_mode = on\narchive_command = 'cp %p ${archive}/%f.new && mv ${archive}/%f.new ${archive}/%f'\n`,
  )
  await start(primary)
  await runSql(primary, `create role ${REPLICATOR} login replication password '${password}'`)
  await runSql(primary, `create role ${OWNER} login password '${password}'`)
  await runSql(primary, `create database ${DATABASE} owner ${OWNER}`)
  await follow(standby)

  return {
    /** Ports for a balancer that checks which server is primary. */
    servers: servers.map(({ name, port, rolePort }) => ({ name, port, rolePort })),
    /** URL of the database through a port. */
    toUrl: (port: number, database = DATABASE) => toUrl(OWNER, port, database),
    /** Runs a PostgreSQL tool with the password, as the servers' account. */
    run,
    /** Connection string for replication from the primary, for copies of the whole server. */
    toReplication: () =>
      `host=localhost port=${primary.port} user=${REPLICATOR} sslmode=verify-full sslrootcert=${authorityFile}`,
    primaryPort: () => primary.port,
    /** Creates a folder owned by the servers' account. */
    async createFolder(name: string): Promise<string> {
      const folder = join(root, name)
      await mkdir(folder)
      await own(folder, account)
      return folder
    },
    /** Creates an empty database on the primary. */
    createDatabase: (name: string) => runSql(primary, `create database ${name} owner ${OWNER}`),
    /** Resolves when everything committed so far is archived. */
    async archiveAll() {
      const [switched] = await runSql<{ file: string }>(primary, 'select pg_walfile_name(pg_switch_wal()) as file')
      await untilReady(
        async () => (await readdir(archive)).includes(switched?.file ?? ''),
        'WAL was not archived in time',
      )
    },
    /** Starts a server on the copy in `folder/data`, which replays the archive to its end. Returns its port. */
    async startCopy(folder: string): Promise<number> {
      const [port = 0] = await findFreePorts(1)
      const data = join(folder, 'data')
      await appendFile(
        join(data, 'postgresql.auto.conf'),
        `restore_command = 'cp ${archive}/%f %p'\nrecovery_target_action = promote\narchive_mode = off\nsynchronous_standby_names = ''\n`,
      )
      await writeFile(join(data, 'recovery.signal'), '', { mode: 0o666 })
      const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories='].flatMap((each) => ['-c', each])
      const server = await startServer({ native, folder, port, account, settings })
      add(server, stopServer)
      await untilReady(async () => {
        const [state] = await runSql<{ isOver: boolean }>({ port }, 'select not pg_is_in_recovery() as "isOver"')
        return state?.isOver === true
      }, 'copy did not finish recovery in time')
      return port
    },
    /** The subset of these slugs that the primary has. */
    async findSlugs(slugs: readonly string[]): Promise<ReadonlySet<string>> {
      const text = 'select slug from proofs where slug = any($1::text[])'
      const rows = await queryPostgres<{ slug: string }>(toUrl(OWNER, primary.port, DATABASE), text, [slugs])
      return new Set(rows.map(({ slug }) => slug))
    },
    /** Stops replication to the standby. */
    cut: () => primary.wire.cut(),
    /** Kills the primary with all its sessions. */
    async kill() {
      const { process: server, folder } = primary
      if (server === undefined) throw new Error('the primary is not running')
      await killServer({ server, folder })
      primary.process = undefined
    },
    /** Resolves when the standby has become the primary. */
    async promote() {
      await runSql(standby, 'select pg_promote(true, 60)')
      ;[primary, standby] = [standby, primary]
    },
    /** Restarts the killed server as standby of the other. */
    rejoin: () => follow(standby),
    /** Whether a connection without TLS is rejected. */
    async rejectsPlain(): Promise<boolean> {
      const plain = `postgres://${OWNER}:${password}@localhost:${primary.port}/${DATABASE}`
      return queryPostgres(plain, 'select 1').then(
        () => false,
        (error: { code?: string }) => error.code === '28000',
      )
    },
  }
}

/** Requires TLS like the services do: the server's certificate must match its name and this authority. */
function toQuery(authorityFile: string): string {
  return `?sslmode=verify-full&sslrootcert=${authorityFile}`
}

async function own(path: string, account: Account | undefined) {
  if (account !== undefined) await chown(path, account.uid, account.gid)
}

/** An HTTP server that reports whether a PostgreSQL server is primary, as Patroni does. */
function createRoleServer(url: string) {
  let client: PostgresClient | undefined
  async function isPrimary(): Promise<boolean> {
    if (client === undefined || client.hasEnded()) client = await connectPostgres(url, { timeoutMs: ROLE_MS })
    const [row] = await client.query<{ isPrimary: boolean }>('select not pg_is_in_recovery() as "isPrimary"')
    return row?.isPrimary === true
  }
  function forget() {
    void client?.end()
    client = undefined
  }
  const server = createServer((_, response) => {
    isPrimary().then(
      (is) => response.writeHead(is ? 200 : 503).end(),
      () => {
        forget()
        response.writeHead(503).end()
      },
    )
  })
  server.on('close', forget)
  return server
}

async function untilReady(isSo: () => Promise<boolean>, fault: string) {
  if (!(await until(isSo, READY_MS))) throw new Error(fault)
}
