import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'

/* The set-up script in a separate checkout, with a fake npm. Downloads nothing. */

/** STUB chooses the fake's behaviour: one word per run, and the last word for all further runs. */
export const STUB_NPM = `
const { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync, chmodSync } = require('node:fs')
const { dirname, join } = require('node:path')
const args = process.argv.slice(2)
const { STUB_LOG, STUB = 'install', STUB_CACHE = join(dirname(STUB_LOG), 'cache'), ...env } = process.env
if (args[0] === 'config') { console.log(STUB_CACHE); process.exit(0) }
const runs = existsSync(STUB_LOG) ? readFileSync(STUB_LOG, 'utf8').split('\\n').length - 1 : 0
const words = STUB.split(' ')
const word = words[Math.min(runs, words.length - 1)]
const settings = Object.fromEntries(Object.entries(env).filter(([key]) => /^npm_config_|^NODE_ENV/.test(key)))
appendFileSync(STUB_LOG, JSON.stringify({ args, cwd: process.cwd(), pid: process.pid, settings }) + '\\n')
const hang = () => setInterval(() => {}, 1000)
const write = (path, text) => { mkdirSync(dirname(path), { recursive: true }); writeFileSync(path, text) }
function install({ leaveOut } = {}) {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
  for (const [path, { version }] of Object.entries(packages)) {
    if (path === '' || path === leaveOut) continue
    write(join(path, 'package.json'), JSON.stringify({ version }))
    if (!path.includes('node-linux-')) continue
    write(join(path, 'bin/node'), '#!/bin/sh\\nPINNED_NODE=yes exec ' + process.execPath + ' "$@"\\n')
    chmodSync(join(path, 'bin/node'), 0o755)
  }
  write('node_modules/.package-lock.json', JSON.stringify({ packages }))
}
const deeds = {
  install: () => install(),
  leave_out: () => install({ leaveOut: 'node_modules/left' }),
  fail: () => { console.error('npm error code E404\\nnpm error 404 left is not in this registry'); process.exit(1) },
  unreachable: () => { console.error('npm error code ENOTFOUND\\nnpm error network'); process.exit(1) },
  half: () => { write('node_modules/left/package.json', '{"ver'); hang() },
  hang,
  stubborn: () => { process.on('SIGTERM', () => {}); hang() },
  hopeless: () => {
    for (const name of ['a', 'b', 'c']) console.error('npm http fetch GET http://127.0.0.1:9/' + name + ' attempt 3 failed with ECONNREFUSED')
    hang()
  },
  wait: () => { const timer = setInterval(() => { if (existsSync('go')) { clearInterval(timer); install() } }, 20) },
}
deeds[word]()
`

const REPOSITORY = join(import.meta.dirname, '../..')
const RUNNING_MAJOR = Number.parseInt(process.versions.node, 10)

type Env = Record<string, string>
type Call = { args: string[]; cwd: string; pid: number; settings: Env }

/** A checkout with two packages to install. Its pinned Node is the running one unless `pinned` is set. */
export function createCheckout({
  pinned = RUNNING_MAJOR,
  platforms = ['linux-arm64', 'linux-x64'],
  onEnd = onTestFinished as (cleanUp: () => unknown) => unknown,
} = {}) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'countersign-bootstrap-')))
  onEnd(() => rmSync(root, { recursive: true, force: true }))
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  const writeLock = (versions: Record<string, string>) => {
    const packages = Object.entries(versions).map(([name, version]) => [`node_modules/${name}`, { version }])
    write('package-lock.json', JSON.stringify({ packages: { '': {}, ...Object.fromEntries(packages) } }))
  }
  cpSync(join(REPOSITORY, 'scripts/bootstrap.mjs'), join(root, 'scripts/bootstrap.mjs'))
  cpSync(join(REPOSITORY, 'scripts/bootstrap'), join(root, 'scripts/bootstrap'), { recursive: true })
  const nodes = Object.fromEntries(platforms.map((platform) => [`node-${platform}`, `${pinned}.1.2`]))
  write('scripts/runtime/package.json', JSON.stringify({ optionalDependencies: nodes }))
  const runtime = Object.entries(nodes).map(([name, version]) => [`node_modules/${name}`, { version }])
  write('scripts/runtime/package-lock.json', JSON.stringify({ packages: { '': {}, ...Object.fromEntries(runtime) } }))
  writeLock({ left: '1.0.0', right: '2.0.0' })
  write('stub/package.json', '{"type":"commonjs"}')
  write('stub/npm-cli.js', STUB_NPM)
  const log = join(root, 'calls')

  function start(command: readonly string[], env: Env = {}) {
    const child = spawn(process.execPath, ['scripts/bootstrap.mjs', ...command], {
      cwd: root,
      env: { PATH: '/usr/bin:/bin', npm_execpath: join(root, 'stub/npm-cli.js'), STUB_LOG: log, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    onEnd(() => void child.kill('SIGKILL'))
    const output = { out: '', err: '' }
    child.stdout.on('data', (data) => (output.out += data))
    child.stderr.on('data', (data) => (output.err += data))
    const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, ...output }))
    return { child: child as ChildProcess, output, ended }
  }
  return {
    root,
    write,
    writeLock,
    start,
    run: (command: readonly string[], env?: Env) => start(command, env).ended,
    has: (path: string) => existsSync(join(root, path)),
    calls: (): Call[] =>
      existsSync(log)
        ? readFileSync(log, 'utf8')
            .split('\n')
            .filter(Boolean)
            .map((line) => JSON.parse(line))
        : [],
  }
}
