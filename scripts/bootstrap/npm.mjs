import { spawn, spawnSync } from 'node:child_process'
import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, readFileSync, realpathSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { npmLogFile, runtime } from './paths.mjs'
import { showProgress } from './progress.mjs'
import { Interrupted } from './runCommand.mjs'
import { SetupError } from './SetupError.mjs'

/** `reason` is `unreachable`, `timeout`, `failed` or `incomplete`. `isTidy`: npm exited by itself and rolled back its changes. */
export class NpmError extends Error {
  name = 'NpmError'

  constructor(reason, message, { isTidy = true } = {}) {
    super(message)
    this.reason = reason
    this.isTidy = isTidy
  }
}

const networkCode =
  /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ECONNABORTED|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|ENOTCACHED|E50[234])\b/

/**
 * Runs npm under the given Node, with its output in a file and a progress line on the screen. `findMissing` lists missing packages: npm drops
 * optional packages, such as native ones, when a fetch fails, and still exits with 0.
 */
export async function runNpm(args, { node, cwd, lock, label, progress, findMissing }) {
  const npm = findNpm()
  const env = toCleanEnvironment(node)
  if (!isCacheWritable(findCache(node, npm, env))) env.npm_config_cache = join(runtime, 'npm-cache')
  const patience = [
    '--fetch-retries=2',
    '--fetch-retry-mintimeout=1000',
    '--fetch-retry-factor=4',
    '--fetch-timeout=30000',
  ]
  // The lockfile fixes versions and hashes, so a cached response is as good as a fresh one.
  const quiet = ['--prefer-offline', '--loglevel=http', '--no-progress', '--color=false']

  const log = openSync(npmLogFile, 'w')
  const child = spawn(node, [npm, ...args, ...patience, ...quiet], { cwd, env, stdio: ['ignore', log, log] })
  closeSync(log)
  if (child.pid) lock.addProcess(child.pid)

  const ending = { interruptedBy: undefined, reason: undefined, isTidy: true }
  const end = (graceMs) => {
    child.kill('SIGTERM')
    const kill = () => {
      ending.isTidy = false
      child.kill('SIGKILL')
    }
    setTimeout(kill, graceMs).unref()
  }
  const onSignal = (signal) => {
    ending.interruptedBy ??= signal
    end(2_000)
  }
  const giveUp = (reason) => {
    if (ending.reason) return
    ending.reason = reason
    end(20_000)
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, onSignal)
  const limit = setTimeout(() => giveUp('timeout'), Math.max(0, lock.deadlineMs - Date.now()))
  const watch = setInterval(() => isHopeless(readFileSync(npmLogFile, 'utf8')) && giveUp('unreachable'), 1_000)
  const stopProgress = showProgress(label, progress)

  const code = await new Promise((resolve) => {
    child.on('error', () => resolve(1))
    child.on('close', (code) => resolve(code ?? 1))
  })

  clearTimeout(limit)
  clearInterval(watch)
  for (const signal of signals) process.off(signal, onSignal)
  const missing = code === 0 ? findMissing() : []
  stopProgress(code === 0 && missing.length === 0)
  if (ending.interruptedBy) throw new Interrupted(ending.interruptedBy)
  if (ending.reason) throw new NpmError(ending.reason, '', ending)
  const output = readFileSync(npmLogFile, 'utf8')
  if (code !== 0) throw toNpmError(output)
  if (missing.length > 0)
    throw new NpmError(networkCode.test(output) ? 'unreachable' : 'incomplete', missing.join(', '))
}

/**
 * npm requests dozens of optional packages of other platforms one by one and retries each. Without a network that takes minutes. Three final
 * failures without any successful fetch are enough to stop.
 */
function isHopeless(output) {
  const lines = output.split('\n').filter((line) => line.startsWith('npm http fetch'))
  const failed = lines.filter((line) => line.includes('attempt 3 failed'))
  const arrived = lines.some((line) => /fetch GET [234]\d\d /.test(line) && !line.includes('(cache hit)'))
  return failed.length >= 3 && !arrived
}

function toNpmError(output) {
  const errors = output.split('\n').filter((line) => line.startsWith('npm error'))
  // Single attempts fail on a healthy network too, so only npm's final code counts.
  const isNetwork = networkCode.test(errors.find((line) => line.startsWith('npm error code')))
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
 * The parent npm's settings (its omit, its prefix, its package) must not affect the install. Only the registry and the way to reach it are
 * kept.
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

/** A home folder that is read-only or belongs to another user must not stop the set-up. */
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
