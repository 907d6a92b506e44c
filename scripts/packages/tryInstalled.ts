import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copyExample } from './copyExample.ts'
import type { Packed } from './readPublished.ts'
import { startRegistry } from './startRegistry.ts'

/** Packages that an app installs next to ours: their peers, wagmi's peers, and types for the script. */
const BESIDE = ['viem', 'react', 'wagmi', '@tanstack/react-query', '@tanstack/query-core', '@types/node']
/** The address of the in-memory service, instead of the local stack. */
const PLACES = { 'http://localhost:8080': 'https://service.test', 'http://localhost:8545': 'https://rpc.test' }
/** The verifier's result for the golden receipt: no step fails, but the code is not anchored and the hardware is simulated. */
const SIMULATED = 3

/**
 * Installs the packed packages into an empty project, loads every entry, compiles and runs the script of `examples/node`, and verifies a
 * receipt. Throws if any of that fails.
 */
export async function tryInstalled(root: string, packed: readonly Packed[]): Promise<void> {
  const project = await mkdtemp(join(tmpdir(), 'countersign-installed-'))
  const registry = await startRegistry(root, packed)
  const run = (command: string, args: readonly string[], isRight?: (code: number, stdout: string) => boolean) =>
    runIn(project, { command, args, isRight })
  try {
    await copyExample(join(root, 'examples/node'), { to: project, replaced: PLACES })
    await copyFile(join(import.meta.dirname, 'installed/testService.ts'), join(project, 'testService.ts'))
    await writeFile(join(project, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
    const versions = await Promise.all(BESIDE.map((name) => readVersion(root, name)))
    const names = packed.map(({ manifest }) => `${manifest.name}@${manifest.version}`)
    const settings = [
      '--registry',
      registry.url,
      '--cache',
      join(project, '.npm'),
      '--no-audit',
      '--no-fund',
      '--loglevel=error',
    ]
    // With npm's peer checks, as in any app. Nested, so that a package finds only its own and the app's dependencies.
    const strict = ['--engine-strict', '--no-legacy-peer-deps', '--install-strategy=nested']
    await run('npm', ['install', ...strict, ...settings, ...names, ...versions])

    await writeFile(join(project, 'entries.mjs'), packed.flatMap(toImports).join('\n'))
    await run(process.execPath, ['entries.mjs'])

    await run('tsc', ['-p', '.'])
    const isPaid = (code: number, stdout: string) => code === 0 && /^Status +complete$/m.test(stdout)
    await run(process.execPath, ['--import', './dist/testService.js', 'dist/pay.js'], isPaid)

    const receipt = 'node_modules/@countersign/receipt/spec/golden/receipt.json'
    await run(
      'node_modules/.bin/countersign-verifier',
      ['verify', '--offline', '--', receipt],
      (code) => code === SIMULATED,
    )
  } finally {
    await registry.stop()
    await rm(project, { recursive: true, force: true })
  }
}

async function readVersion(root: string, name: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(root, 'node_modules', name, 'package.json'), 'utf8'))
  return `${name}@${version}`
}

function toImports({ manifest }: Packed): string[] {
  const entries = Object.keys(manifest.exports ?? {})
  return entries.map((entry) => `await import('${manifest.name}${entry.slice(1)}')`)
}

type Command = {
  command: string
  args: readonly string[]
  /** Runs a command and checks its exit code, 0 by default. */
  isRight?: ((code: number, stdout: string) => boolean) | undefined
}

function runIn(cwd: string, { command, args, isRight = (code) => code === 0 }: Command): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile(command, args, { cwd }, (error, stdout, stderr) => {
      const code = typeof error?.code === 'number' ? error.code : error === null ? 0 : 1
      if (isRight(code, stdout)) return resolve()
      reject(new Error(`${command} ${args.join(' ')} ended with ${error?.code ?? 0}:\n${stdout}${stderr}`))
    })
  })
}
