// Installs the examples from packed packages into empty folders, builds them, and uses them against the local stack:
//   npm run examples [-- NAME…]

import { spawn, spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { findChromium } from '../scripts/findChromium.ts'
import { copyExample } from '../scripts/packages/copyExample.ts'
import { type Packed, packAll } from '../scripts/packages/packAll.ts'
import { readPublished } from '../scripts/packages/readPublished.ts'
import { driveNext, driveNode, driveVite, driveWagmi } from './examples/drive.ts'
import { startBrowser } from './startBrowser.ts'
import { startDevStack } from './startDevStack.ts'

const EXAMPLES = { node: driveNode, vite: driveVite, wagmi: driveWagmi, next: driveNext }
type Name = keyof typeof EXAMPLES

const USAGE = `usage: npm run examples [-- NAME…]

Tests the examples (${Object.keys(EXAMPLES).join(', ')}; all unless named) in Chromium and in Node 20, 22 and 24, from packed packages.
npm downloads what they depend on. \`npm run example -- NAME\` starts one.`

const root = resolve(import.meta.dirname, '..')
const START_TIMEOUT_MS = 240_000
/** Nothing but packages is fetched, and nothing reported. */
const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' }

/** npm in a folder; throws where it fails. */
function runNpm(cwd: string, ...args: string[]): void {
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd, env, encoding: 'utf8' })
  if (status !== 0) throw new Error(`npm ${args[0]} failed in ${cwd}:\n${stdout}${stderr}`)
}

/** `npm start` in a folder, until the page answers. */
async function startServer(cwd: string, url: string) {
  // A group of its own: npm does not pass signals on to what it starts.
  const child = spawn('npm', ['start'], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const ended = new Promise<void>((settle) => child.on('close', () => settle()))
  const stop = async () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGTERM')
    await ended
  }
  const deadlineMs = Date.now() + START_TIMEOUT_MS
  while (child.exitCode === null && Date.now() < deadlineMs) {
    if (
      await fetch(url).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return { stop }
    await setTimeout(200)
  }
  await stop()
  throw new Error(`${cwd} did not start:\n${output}`)
}

async function test(names: readonly Name[], executablePath: string): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), 'countersign-examples-'))
  const stack = await startDevStack({ hasWeb: false })
  const browser = await startBrowser(executablePath)
  try {
    const packages = readPublished(root)
    const packed: Packed[] = await packAll(root, { packages, folder: join(work, 'packed') })
    const port = new URL(stack.webUrl).port
    const replaced = {
      'http://localhost:8080': stack.apiUrl,
      'http://localhost:8545': stack.chainUrl,
      '--port 3000': `--port ${port}`,
    }
    for (const name of names) {
      const startedMs = performance.now()
      const folder = join(work, name)
      await mkdir(folder)
      await copyExample(join(root, 'examples', name), { to: folder, replaced })
      runNpm(folder, 'install', '--prefer-offline', ...packed.map(({ tarball }) => tarball))
      // Next.js builds when it starts.
      runNpm(folder, 'run', 'build', '--if-present')
      await EXAMPLES[name]({ folder, url: stack.webUrl, browser, startServer: () => startServer(folder, stack.webUrl) })
      console.log(`${name}: passed (${((performance.now() - startedMs) / 1000).toFixed(1)} s)`)
    }
  } finally {
    await browser.close()
    await stack.stop()
    await rm(work, { recursive: true, force: true })
  }
}

const isName = (text: string): text is Name => Object.hasOwn(EXAMPLES, text)
const given = process.argv.slice(2)
if (given[0] === '--help') {
  console.log(USAGE)
} else if (!given.every(isName)) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  const executablePath = await findChromium(process.env, AbortSignal.timeout(300_000))
  if (!executablePath) throw new Error('no Chromium found: set CHROMIUM_PATH')
  await test(given.length > 0 ? given : (Object.keys(EXAMPLES) as Name[]), executablePath)
}
