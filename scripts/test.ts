import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import { resolve } from 'node:path'
import { findChromium } from './findChromium.ts'

const USAGE = `usage: npm test -- [arguments for vitest…]
       npm run check -- [arguments for vitest…]
       npm run e2e -- [arguments for vitest…]

Runs format and lint, types, unused code, circles of imports and the tests, in order, up to the first failure. npm test also runs the
Solidity tests and checks what would be published. npm run e2e runs nothing but the tests of e2e/, all of them, and needs a Chromium.
  --help   says this; for vitest's own options: npx vitest --help

Example: npm run check -- packages/protocol
Exit codes: 0 all passed, 1 otherwise.`

// Vitest would print its help, after minutes of the other steps.
if (process.argv.some((argument) => argument === '--help' || argument === '-h')) {
  console.log(USAGE)
  process.exit(0)
}

type Command = [string, ...string[]]

type Step = { name: string; run: () => Promise<boolean> }

const withoutBrowser =
  'browser tests did not run: no Chromium found (set CHROMIUM_PATH, or REQUIRE_BROWSER=1 to make this a failure)'

const checkOnly = process.argv.includes('--check')
const isEndToEnd = process.argv.includes('--e2e')
const vitestArguments = process.argv.slice(2).filter((argument) => argument !== '--check' && argument !== '--e2e')

// A log file should be readable; `biome ci` colours its output there unless told not to.
const isPlain = !process.stdout.isTTY && !process.env.FORCE_COLOR
if (isPlain) process.env.NO_COLOR = '1'

const checks: Step[] = [
  { name: 'format and lint', run: () => runAll(['biome', 'ci', `--colors=${isPlain ? 'off' : 'force'}`, '.']) },
  { name: 'types', run: () => runAll(['tsc', '-b'], ['tsc', '-p', 'tsconfig.tests.json']) },
  { name: 'unused code', run: () => runAll(['knip']) },
  { name: 'circles', run: () => runAll(['node', 'scripts/checkCircles.ts']) },
]
const tests: Step = { name: 'tests', run: runTests }
const products: Step[] = [
  { name: 'Solidity tests', run: () => runAll(['node', '-C', 'source', 'contracts/testSolidity.ts']) },
  { name: 'packages', run: () => runAll(['node', '-C', 'source', 'scripts/release.ts']) },
]
const steps = isEndToEnd ? [tests] : [...checks, tests, ...(checkOnly ? [] : products)]

const stop = new AbortController()
let running: ChildProcess | undefined
let stoppedBy: NodeJS.Signals | undefined

for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) {
  process.on(signal, () => {
    stoppedBy = signal
    stop.abort()
    // At a terminal the kernel has sent Ctrl-C to the child already.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) running?.kill(signal)
  })
}

async function runTests(): Promise<boolean> {
  const chromium = await findChromium(process.env, stop.signal)
  if (!chromium) console.log(withoutBrowser)
  if (!chromium && (isEndToEnd || process.env.REQUIRE_BROWSER === '1')) return false
  const { CHROMIUM_PATH: _, ...env } = process.env
  if (isEndToEnd) env.E2E = '1'
  return run(['vitest', 'run', ...vitestArguments], chromium ? { ...env, CHROMIUM_PATH: chromium } : env)
}

async function runAll(...commands: Command[]): Promise<boolean> {
  for (const command of commands) if (!(await run(command))) return false
  return true
}

async function run([command, ...args]: Command, env = process.env): Promise<boolean> {
  if (stoppedBy) return false
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: 'inherit', env })
    running = child
    child.on('error', (error) => {
      console.error(`${command}: ${error.message}`)
      resolve(false)
    })
    child.on('close', (code) => resolve(code === 0))
  })
}

async function main(): Promise<void> {
  process.chdir(resolve(import.meta.dirname, '..'))
  const results: string[] = []
  let passed = 0
  let failed = 0
  for (const { name, run } of steps) {
    if (failed > 0) {
      results.push(`  not run  ${name}`)
      continue
    }
    console.log(`\n=== ${name} ===`)
    const startedMs = performance.now()
    const succeeded = await run()
    const result = `${succeeded ? 'passed' : 'FAILED'}  ${name} (${((performance.now() - startedMs) / 1000).toFixed(1)} s)`
    console.log(`=== ${result} ===`)
    results.push(`   ${result}`)
    if (succeeded) passed += 1
    else failed += 1
  }
  console.log(`\n${results.join('\n')}`)
  console.log(`steps: ${passed} passed, ${failed} failed`)
  if (stoppedBy) process.exit(128 + constants.signals[stoppedBy])
  process.exitCode = failed > 0 ? 1 : 0
}

await main()
