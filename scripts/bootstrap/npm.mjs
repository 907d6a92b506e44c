import { spawn, spawnSync } from 'node:child_process'
import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, readFileSync, realpathSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { npmLogFile, runtime } from './paths.mjs'
import { showProgress } from './progress.mjs'
import { Interrupted } from './runCommand.mjs'
import { SetupError } from './SetupError.mjs'

/** `reason` is `unreachable`, `timeout`, `failed` or `incomplete`. */
export class NpmError extends Error {
  name = 'NpmError'

  constructor(reason, message) {
    super(message)
    this.reason = reason
  }
}

const networkCode =
  /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ECONNABORTED|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|ENOTCACHED|E50[234])\b/

export function networkFailed(output) {
  return networkCode.test(output)
}

/** Runs npm under the given Node. Its output goes to a file; what people see is the progress line. */
export async function runNpm(args, { node, cwd, lock, label, progress }) {
  const npm = findNpm()
  const env = toCleanEnvironment(node)
  if (!isCacheWritable(findCache(node, npm, env))) env.npm_config_cache = join(runtime, 'npm-cache')
  const patience = [
    '--fetch-retries=3',
    '--fetch-retry-mintimeout=1000',
    '--fetch-retry-factor=3',
    '--fetch-timeout=60000',
  ]
  // The lockfile fixes versions and hashes, so a cached answer is as good as a fresh one.
  const quiet = ['--prefer-offline', '--loglevel=http', '--no-progress', '--color=false']

  const log = openSync(npmLogFile, 'w')
  const child = spawn(node, [npm, ...args, ...patience, ...quiet], { cwd, env, stdio: ['ignore', log, log] })
  closeSync(log)
  if (child.pid) lock.addProcess(child.pid)

  const ending = { signal: undefined, timedOut: false }
  const end = () => {
    child.kill('SIGTERM')
    setTimeout(() => child.kill('SIGKILL'), 5_000).unref()
  }
  const onSignal = (signal) => {
    ending.signal ??= signal
    end()
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, onSignal)
  const onTime = () => {
    ending.timedOut = true
    end()
  }
  const timer = setTimeout(onTime, Math.max(0, lock.deadlineMs - Date.now()))
  const stopProgress = showProgress(label, progress)

  const code = await new Promise((resolve) => {
    child.on('error', () => resolve(1))
    child.on('close', (code) => resolve(code ?? 1))
  })

  clearTimeout(timer)
  stopProgress(code === 0)
  for (const signal of signals) process.off(signal, onSignal)
  if (ending.signal) throw new Interrupted(ending.signal)
  const output = readFileSync(npmLogFile, 'utf8')
  if (ending.timedOut) throw new NpmError('timeout', '')
  if (code !== 0) throw toNpmError(output)
  return { output }
}

function toNpmError(output) {
  const errors = output.split('\n').filter((line) => line.startsWith('npm error'))
  // Single attempts fail on a healthy network too; what counts is the code npm gave up with.
  const isNetwork = networkFailed(errors.find((line) => line.startsWith('npm error code')) ?? '')
  return isNetwork ? new NpmError('unreachable', '') : new NpmError('failed', errors.slice(0, 12).join('\n'))
}

function findNpm() {
  const { npm_execpath: outer, PATH = '' } = process.env
  if (outer?.endsWith('npm-cli.js') && existsSync(outer)) return outer
  const onPath = PATH.split(delimiter).map((folder) => join(folder, 'npm'))
  const besideNode = join(dirname(process.execPath), '../lib/node_modules/npm/bin/npm-cli.js')
  const found = [...onPath, besideNode].filter((file) => existsSync(file)).map((file) => realpathSync(file))
  const npm = found.find((file) => file.endsWith('.js'))
  if (!npm)
    throw new SetupError(
      'Countersign could not be set up: npm was not found. Install npm, then run the same command again.',
    )
  return npm
}

/**
 * Settings of the npm that started us (its omit, its prefix, its package) must not steer the install; only those that
 * say where the registry is and how to reach it may.
 */
function toCleanEnvironment(node) {
  const kept =
    /^npm_config_(registry|@.*|\/\/.*|.*proxy|noproxy|ca|cafile|cert|key|strict_ssl|userconfig|globalconfig|cache|offline|maxsockets)$/i
  const dropped = /^(npm_.*|NODE_ENV|INIT_CWD)$/i
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => kept.test(key) || !dropped.test(key)))
  env.PATH = [dirname(node), process.env.PATH].join(delimiter)
  return env
}

function findCache(node, npm, env) {
  const { stdout } = spawnSync(node, [npm, 'config', 'get', 'cache'], { cwd: runtime, env, encoding: 'utf8' })
  return stdout?.trim()
}

/** A home that is read-only or belongs to someone else must not stop the set-up. */
function isCacheWritable(cache) {
  try {
    mkdirSync(join(cache, '_cacache', 'tmp'), { recursive: true })
    const parts = ['.', '_cacache', '_cacache/tmp', '_cacache/content-v2', '_cacache/index-v5', '_logs']
    const folders = parts.map((part) => join(cache, part)).filter((folder) => existsSync(folder))
    for (const folder of folders) accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}
