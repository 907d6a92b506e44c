// Installs the pinned Node and the dependencies if they are missing, then runs a command: node scripts/bootstrap.mjs <command> [arguments…]
// Uses only built-ins of Node 20, because it runs before anything is installed.

import { constants } from 'node:os'
import { relative } from 'node:path'
import { areDependenciesReady, expectedPackages, installDependencies } from './bootstrap/dependencies.mjs'
import { withSetupLock } from './bootstrap/lock.mjs'
import { chooseNode, installNode, isNodeReady } from './bootstrap/node.mjs'
import { NpmError } from './bootstrap/npm.mjs'
import { npmLogFile, root } from './bootstrap/paths.mjs'
import { Interrupted, runCommand } from './bootstrap/runCommand.mjs'
import { SetupError } from './bootstrap/SetupError.mjs'

async function setUp() {
  const node = chooseNode()
  if (isNodeReady(node) && areDependenciesReady(node)) return node
  await withSetupLock(async (lock) => {
    try {
      // Checked again under the lock, because another set-up may have finished in the meantime.
      if (!isNodeReady(node)) await installNode(node, lock)
      if (!areDependenciesReady(node)) await installDependencies(node, lock)
    } catch (error) {
      throw error instanceof NpmError ? new SetupError(explain(error, describeMissing(node))) : error
    }
  })
  return node
}

function describeMissing(node) {
  const missing = []
  if (!isNodeReady(node)) missing.push(`Node ${node.version} (the version this repository is pinned to)`)
  if (!areDependenciesReady(node))
    missing.push(`dependencies (${expectedPackages().length} packages, from package-lock.json)`)
  return missing
}

function explain(error, missing) {
  const reasons = {
    unreachable: 'the npm registry could not be reached',
    timeout: 'npm did not finish in time (COUNTERSIGN_SETUP_TIMEOUT_S sets the limit, in seconds)',
    failed: `npm failed\n\n${error.message}\n`,
    incomplete: `npm left out what package-lock.json lists (is it in step with every package.json?): ${error.message}`,
  }
  return [
    `Countersign could not be set up: ${reasons[error.reason]}`,
    ...missing.map((what) => `  missing: ${what}`),
    'Check the network, the proxy and the registry in your npm settings, then run the same command again.',
    `The output of npm is in ${relative(root, npmLogFile)}.`,
  ].join('\n')
}

/** Exits by the same signal, so that the caller sees why. As process 1 of a container it can only use the exit code. */
function endBySignal(signal) {
  process.exitCode = 128 + constants.signals[signal]
  process.kill(process.pid, signal)
}

async function main() {
  const [command, ...args] = process.argv.slice(2)
  if (!command) {
    console.error('usage: node scripts/bootstrap.mjs <command> [arguments…]')
    process.exit(2)
  }
  try {
    const node = await setUp()
    process.exit(await runCommand(node, command, args))
  } catch (error) {
    if (error instanceof Interrupted) return endBySignal(error.signal)
    console.error(error instanceof SetupError ? error.message : `Countersign could not be set up: ${error.message}`)
    process.exit(1)
  }
}

await main()
