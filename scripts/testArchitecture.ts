import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { delimiter, dirname, join, relative } from 'node:path'
import { architectures, findEmulator, listPackages } from './architecture/emulators.ts'
import { prepareCheckout } from './architecture/prepareCheckout.ts'
import { readArguments, refuseArguments } from './readArguments.ts'

const USAGE = `usage: npm run test:arm64 -- [options] [PATHS]
       npm run test:x64 -- [options] [PATHS]

Runs test files under the Node of that architecture. On another architecture it uses Debian's qemu-user, and keeps a copy of the checkout
with the other dependencies in .countersign. Emulated tests are some 30 times slower.

  PATHS            test files or folders (default: all tests that load native addons)
  -t, --testNamePattern PATTERN
                   runs only the tests with a matching name
  --list           prints the default test files
  --help           prints this text

Without qemu-user it prints a line and exits with 0. REQUIRE_QEMU=1 makes that a failure.

Example: npm run test:arm64 -- deploy/measure.test.ts
Exit codes: 0 all passed or no emulator, 1 otherwise, 2 wrong arguments.`

const root = join(import.meta.dirname, '..')

/** Returns the exit code. */
async function run(command: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(command, args, { cwd, env, stdio: 'inherit' })
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) {
    // At a terminal the kernel has already sent Ctrl-C to the child.
    process.on(signal, () => (signal !== 'SIGINT' || !process.stdin.isTTY) && child.kill(signal))
  }
  const [code] = await once(child, 'close')
  return code ?? 1
}

async function findDefault(): Promise<string[]> {
  // Takes a second to load.
  const { findNativeTests } = await import('./architecture/findNativeTests.ts')
  return findNativeTests(root)
}

async function main(): Promise<number> {
  const options = { testNamePattern: { type: 'string', short: 't' }, list: { type: 'boolean' } } as const
  const { values, positionals } = readArguments(options, USAGE, { takesPositionals: true })
  const [name, ...given] = positionals
  const arch = architectures.find((each) => each === name)
  if (arch === undefined) return refuseArguments(`unknown architecture: expected ${architectures.join(' or ')}`, USAGE)
  const paths = given.length > 0 ? given.map((path) => relative(root, path)) : await findDefault()
  if (values.list) {
    console.log(paths.join('\n'))
    return 0
  }
  const pattern = values.testNamePattern === undefined ? [] : ['--testNamePattern', values.testNamePattern]
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', ...paths, ...pattern]
  // Browser tests do not depend on the architecture of Node.
  const { CHROMIUM_PATH: _, ...env } = process.env
  if (process.arch === arch) return run(process.execPath, vitest, root, env)

  const emulator = findEmulator(arch)
  if (emulator === undefined) {
    console.log(`tests for ${arch} did not run: install ${listPackages(arch)} (REQUIRE_QEMU=1 makes this a failure)`)
    return process.env.REQUIRE_QEMU === '1' ? 1 : 0
  }
  const { folder, node } = prepareCheckout(root, arch, emulator)
  const PATH = [dirname(node), join(folder, 'node_modules/.bin'), env.PATH].join(delimiter)
  return run(node, vitest, folder, { ...env, PATH, TEST_EMULATED: '1' })
}

process.exitCode = await main()
