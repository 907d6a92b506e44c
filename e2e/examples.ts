// Installs the examples from packed packages into empty folders, builds them, and uses them against the local stack:
//   npm run examples [-- NAME…]

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Browser } from 'playwright'
import { findChromium } from '../scripts/findChromium.ts'
import { copyExample } from '../scripts/packages/copyExample.ts'
import { packAll } from '../scripts/packages/packAll.ts'
import { type Packed, readPublished } from '../scripts/packages/readPublished.ts'
import { readArguments, refuseArguments } from '../scripts/readArguments.ts'
import { driveAgent, driveDirect, driveNext, driveNode, driveVite, driveWagmi } from './examples/drive.ts'
import { startBrowser } from './startBrowser.ts'
import { startDevStack } from './startDevStack.ts'

const EXAMPLES = {
  node: driveNode,
  vite: driveVite,
  wagmi: driveWagmi,
  next: driveNext,
  direct: driveDirect,
  agent: driveAgent,
}
type Name = keyof typeof EXAMPLES

const USAGE = `usage: npm run examples [-- NAME…]

Tests the examples (${Object.keys(EXAMPLES).join(', ')}; all unless named) in Chromium and in Node 20, 22 and 24, from packed packages.
npm downloads what they depend on. To start one by hand: npm run example -- NAME
  --help   says this

Example: npm run examples -- node vite
Exit codes: 0 all passed, 1 one failed, 2 wrong arguments.`

const root = resolve(import.meta.dirname, '..')
const START_TIMEOUT_MS = 240_000
/** Prevents other downloads and reports. */
const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' }

/** Runs npm in a folder, without blocking this process, which runs parts of the stack. */
async function runNpm(cwd: string, ...args: string[]): Promise<void> {
  await promisify(execFile)('npm', args, { cwd, env }).catch((error: { stdout?: string; stderr?: string }) => {
    throw new Error(`npm ${args[0]} failed in ${cwd}:\n${error.stdout}${error.stderr}`)
  })
}

/** Runs `npm start` in a folder until the page responds. */
async function startServer(cwd: string, url: string) {
  // In a separate process group, because npm doesn't forward signals.
  const child = spawn('npm', ['start'], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  let isOver = false
  const ended = once(child, 'close').then(() => {
    isOver = true
  })
  const kill = () => {
    if (!isOver && child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
  }
  process.on('exit', kill)
  const stop = async () => {
    kill()
    await ended
    process.off('exit', kill)
  }
  const answers = () =>
    fetch(url)
      .then(({ ok }) => ok)
      .catch(() => false)
  const deadlineMs = Date.now() + START_TIMEOUT_MS
  while (!isOver && Date.now() < deadlineMs) {
    if (await answers()) return { stop }
    await setTimeout(200)
  }
  await stop()
  throw new Error(`${cwd} did not start:\n${output}`)
}

async function test(names: readonly Name[], executablePath: string): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), 'countersign-examples-'))
  const browser = await startBrowser(executablePath)
  try {
    const packages = readPublished(root)
    const packed = await packAll(root, { packages, folder: join(work, 'packed') })
    const shared = { work, packed, browser }
    const direct = names.filter((name) => name === 'direct')
    const agent = names.filter((name) => name === 'agent')
    const others = names.filter((name) => name !== 'direct' && name !== 'agent')
    if (others.length > 0) await testOnStack(others, { ...shared, options: { hasWeb: false } })
    if (direct.length > 0) await testOnStack(direct, { ...shared, options: { hasWeb: false, isDirect: true } })
    if (agent.length > 0) await testOnStack(agent, { ...shared, options: { hasLog: true } })
  } finally {
    await browser.close()
    await rm(work, { recursive: true, force: true })
  }
}

type OnStack = {
  options: Parameters<typeof startDevStack>[0]
  work: string
  packed: readonly Packed[]
  browser: Browser
}

async function testOnStack(names: readonly Name[], { options, work, packed, browser }: OnStack): Promise<void> {
  const stack = await startDevStack(options)
  try {
    const port = new URL(stack.webUrl).port
    const replaced = {
      'http://localhost:8080': stack.apiUrl,
      'http://localhost:5173': stack.webUrl,
      'http://localhost:8545': stack.chainUrl,
      'http://localhost:9090': stack.oidcUrl,
      '--port 3000': `--port ${port}`,
    }
    for (const name of names) {
      const startedMs = performance.now()
      const folder = join(work, name)
      await mkdir(folder)
      await copyExample(join(root, 'examples', name), { to: folder, replaced })
      // The repository's legacy-peer-deps setting would hide a conflict that apps see.
      await runNpm(folder, 'install', '--no-legacy-peer-deps', ...packed.map(({ tarball }) => tarball))
      // Next.js builds on start.
      await runNpm(folder, 'run', 'build', '--if-present')
      await EXAMPLES[name]({ folder, url: stack.webUrl, browser, startServer: () => startServer(folder, stack.webUrl) })
      console.log(`${name}: passed (${((performance.now() - startedMs) / 1000).toFixed(1)} s)`)
    }
  } finally {
    await stack.stop()
  }
}

const isName = (text: string): text is Name => Object.hasOwn(EXAMPLES, text)
const given = readArguments({}, USAGE, { takesPositionals: true }).positionals
if (!given.every(isName)) refuseArguments('There is no such example.', USAGE)
// Stops the server when this process ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))
const executablePath = await findChromium(process.env, AbortSignal.timeout(300_000))
if (!executablePath) throw new Error('no Chromium found: set CHROMIUM_PATH')
await test(given.length > 0 ? given : (Object.keys(EXAMPLES) as Name[]), executablePath)
