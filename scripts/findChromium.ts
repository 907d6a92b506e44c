import { type SpawnOptions, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Containers have no user namespaces for the sandbox, and only our own pages are opened. The other flags stop background requests. */
export const chromiumArgs = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
] as const

/**
 * A Chromium for the browser tests: `CHROMIUM_PATH`, or one on PATH, or one from apt if we may install it. A `CHROMIUM_PATH` that doesn't
 * work is an error, because the caller chose it.
 */
export async function findChromium(env: NodeJS.ProcessEnv, stop: AbortSignal): Promise<string | undefined> {
  if (env.CHROMIUM_PATH) return (await isChromium(env.CHROMIUM_PATH)) ? env.CHROMIUM_PATH : undefined
  const found = await findOnPath(env)
  if (found || !mayInstall(env)) return found
  await installFromApt(env, stop)
  return findOnPath(env)
}

async function findOnPath(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
    const path = which(env, name)
    if (path && (await isChromium(path))) return path
  }
  return undefined
}

/** Runs it, because some distributions install a script that only says where to get the browser. */
async function isChromium(path: string): Promise<boolean> {
  const { code, output } = await run(path, ['--version'], { signal: AbortSignal.timeout(30_000) })
  return code === 0 && /\b(Chromium|Chrome)\b/.test(output)
}

function mayInstall(env: NodeJS.ProcessEnv): boolean {
  return process.getuid?.() === 0 && which(env, 'apt-get') !== undefined
}

async function installFromApt(env: NodeJS.ProcessEnv, stop: AbortSignal): Promise<void> {
  console.log('no Chromium found: installing it with apt-get (at most 5 minutes; it is optional)')
  const apt = ['-o', 'Acquire::http::Timeout=20', '-o', 'Acquire::https::Timeout=20', '-o', 'Acquire::Retries=1']
  const signal = AbortSignal.any([stop, AbortSignal.timeout(5 * 60_000)])
  const options = { env: { ...env, DEBIAN_FRONTEND: 'noninteractive' }, signal }
  const update = await run('apt-get', [...apt, 'update'], options)
  if (update.code !== 0) return
  await run('apt-get', [...apt, 'install', '-y', '--no-install-recommends', 'chromium'], options)
}

function which(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const candidates = (env.PATH ?? '').split(delimiter).map((folder) => join(folder, name))
  return candidates.find((path) => existsSync(path))
}

async function run(command: string, args: string[], options: SpawnOptions): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'ignore'] })
    let output = ''
    child.stdout?.on('data', (chunk) => {
      output += chunk
    })
    child.on('error', () => resolve({ code: 127, output }))
    child.on('close', (code) => resolve({ code: code ?? 1, output }))
  })
}
