import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import { resolve } from 'node:path'
import { findChromium } from './findChromium.ts'

const USAGE = `usage: npm test -- [arguments for vitest…]
       npm run check -- [arguments for vitest…]
       npm run test:all
       npm run e2e -- [arguments for vitest…]

npm run check runs format and lint, types, unused code, prose and the tests, up to the first failure. npm test also runs the Solidity tests
and checks the packages to publish. Both skip most tests of trials, dev, scripts, deploy and packages/testing, unless arguments name them.
npm run test:all runs everything: the steps of npm test with all tests, the end-to-end tests, and short forms of the commands that are not
tests. npm run e2e runs only the end-to-end tests. test:all and e2e need a Chromium.
  --help   prints this text; for vitest's own options: npx vitest --help

Example: npm run check -- packages/protocol
Exit codes: 0 all passed, 1 otherwise.`

// Otherwise vitest would print its help after minutes of other steps.
if (process.argv.some((argument) => argument === '--help' || argument === '-h')) {
  console.log(USAGE)
  process.exit(0)
}

type Command = [string, ...string[]]

/** If steps run at the same time, their commands print to `write`. */
type Step = { name: string; run: (write?: Write) => Promise<boolean> }
type Write = (text: string) => void

const withoutBrowser =
  'browser tests did not run: no Chromium found (set CHROMIUM_PATH, or REQUIRE_BROWSER=1 to make this a failure)'

const checkOnly = process.argv.includes('--check')
const isEndToEnd = process.argv.includes('--e2e')
const isAll = process.argv.includes('--all')
const vitestArguments = process.argv.slice(2).filter((argument) => !['--check', '--e2e', '--all'].includes(argument))
const isShort = !isAll && !isEndToEnd && vitestArguments.length === 0

// `biome ci` colours its output also in a log file unless this is set.
const isPlain = !process.stdout.isTTY && !process.env.FORCE_COLOR
if (isPlain) process.env.NO_COLOR = '1'

const toStep = (name: string, ...commands: Command[]): Step => ({ name, run: (write) => runAll(commands, write) })

/** The steps of a stage run at the same time. A stage starts when all earlier stages have passed. */
const checks = [
  toStep('format and lint', ['biome', 'ci', `--colors=${isPlain ? 'off' : 'force'}`, '.']),
  toStep('types', ['tsc', '-b'], ['tsc', '-p', 'tsconfig.tests.json']),
  toStep('unused code', ['knip']),
  toStep('prose', ['node', '-C', 'source', 'scripts/prose/main.ts']),
]
const tests = [{ name: 'tests', run: () => runTests(isShort ? { TEST_SHORT: '1' } : {}) }]
const endToEnd = [{ name: 'end-to-end tests', run: () => runTests({ E2E: '1' }) }]
const products = [
  toStep('Solidity tests', ['node', '-C', 'source', 'contracts/testSolidity.ts']),
  toStep('packages', ['node', '-C', 'source', 'scripts/release.ts']),
]
/** One step for each command, in its short form. */
const commands = [
  ['packages/protocol/fuzz/main.ts', '--runs', '2000'],
  ['packages/policy/fuzz/main.ts', '--runs', '10000'],
  ['services/enclave/fuzz/main.ts', '--runs', '1000'],
  ['services/enclave/fuzz/vaults.ts', '--runs', '1000'],
  ['scripts/offChain.ts', '--messages', '50'],
].map((command) => [toStep(command.join(' '), ['node', '-C', 'source', ...command])])

function toStages(): Step[][] {
  if (isEndToEnd) return [endToEnd]
  if (checkOnly) return [checks, tests]
  return [checks, tests, products, ...(isAll ? [endToEnd, ...commands] : [])]
}

const stop = new AbortController()
const running = new Set<ChildProcess>()
let stoppedBy: NodeJS.Signals | undefined

for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) {
  process.on(signal, () => {
    stoppedBy = signal
    stop.abort()
    // At a terminal the kernel has already sent Ctrl-C to the children.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) for (const child of running) child.kill(signal)
  })
}

async function runTests(mode: { TEST_SHORT?: string; E2E?: string }): Promise<boolean> {
  const chromium = await findChromium(process.env, stop.signal)
  const needsChromium = isAll || isEndToEnd || process.env.REQUIRE_BROWSER === '1'
  if (!chromium) console.log(needsChromium ? 'no Chromium found: set CHROMIUM_PATH' : withoutBrowser)
  if (!chromium && needsChromium) return false
  // The caller's values would change which tests run.
  const { CHROMIUM_PATH: _, E2E: __, TEST_SHORT: ___, ...env } = process.env
  if (chromium) env.CHROMIUM_PATH = chromium
  return run(['vitest', 'run', ...vitestArguments], { env: { ...env, ...mode } })
}

async function runAll(commands: Command[], write: Write | undefined): Promise<boolean> {
  for (const command of commands) if (!(await run(command, { write }))) return false
  return true
}

async function run(
  [command, ...args]: Command,
  { env = process.env, write }: { env?: NodeJS.ProcessEnv; write?: Write | undefined },
): Promise<boolean> {
  if (stoppedBy) return false
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: write ? ['ignore', 'pipe', 'pipe'] : 'inherit', env })
    running.add(child)
    if (write) for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', write)
    child.on('error', (error) => {
      console.error(`${command}: ${error.message}`)
      resolve(false)
    })
    child.on('close', (code) => {
      running.delete(child)
      resolve(code === 0)
    })
  })
}

type Result = { hasPassed: boolean; line: string }

async function runStep({ name, run }: Step, isAlone: boolean): Promise<Result> {
  const title = `\n=== ${name} ===`
  const texts: string[] = []
  if (isAlone) console.log(title)
  const startedMs = performance.now()
  const hasPassed = await run(isAlone ? undefined : (text) => void texts.push(text))
  if (!isAlone) console.log(`${title}\n${texts.join('').trimEnd()}`)
  const line = `${hasPassed ? 'passed' : 'FAILED'}  ${name} (${((performance.now() - startedMs) / 1000).toFixed(1)} s)`
  console.log(`=== ${line} ===`)
  return { hasPassed, line }
}

async function main(): Promise<void> {
  process.chdir(resolve(import.meta.dirname, '..'))
  const results: string[] = []
  let passed = 0
  let failed = 0
  for (const stage of toStages()) {
    if (failed > 0) {
      results.push(...stage.map(({ name }) => `  not run  ${name}`))
      continue
    }
    if (stage.length > 1) console.log(`\n${stage.map(({ name }) => name).join(', ')} …`)
    for (const { hasPassed, line } of await Promise.all(stage.map((step) => runStep(step, stage.length === 1)))) {
      results.push(`   ${line}`)
      if (hasPassed) passed += 1
      else failed += 1
    }
  }
  console.log(`\n${results.join('\n')}`)
  console.log(`steps: ${passed} passed, ${failed} failed`)
  if (stoppedBy) process.exit(128 + constants.signals[stoppedBy])
  process.exitCode = failed > 0 ? 1 : 0
}

await main()
