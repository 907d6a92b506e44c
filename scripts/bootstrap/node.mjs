import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runNpm } from './npm.mjs'
import { root, runtime } from './paths.mjs'
import { isGlibc } from './platform.mjs'
import { SetupError } from './SetupError.mjs'

/**
 * The Node to use: the running one if it has the pinned major version, otherwise the one in `scripts/runtime/`. That folder is a separate
 * project, because the dependencies must be installed under this Node: npm under Node 20 skips native packages that need a newer Node, and
 * still exits with 0.
 */
export function chooseNode() {
  const name = `node-${process.platform}-${process.arch}`
  const versions = readJson(join(runtime, 'package.json')).optionalDependencies
  const major = Number.parseInt(Object.values(versions)[0], 10)
  const running = process.versions.node
  if (Number.parseInt(running, 10) === major) return { major, version: running, path: process.execPath }
  if (!versions[name]) throw new SetupError(explainUnsupported(major))
  const path = join(runtime, 'node_modules', name, 'bin', 'node')
  return { major, version: versions[name], path, bundled: name }
}

export function isNodeReady(node) {
  if (!node.bundled) return true
  // npm ci empties node_modules first and writes this file last, so it proves a complete install.
  const installed = readJson(join(runtime, 'node_modules', '.package-lock.json'))
  return installed?.packages[`node_modules/${node.bundled}`]?.version === node.version && existsSync(node.path)
}

export async function installNode(node, lock) {
  if (process.platform === 'linux' && !isGlibc()) throw new SetupError(explainUnsupported(node.major))
  const label = `Installing Node ${node.version}`
  const findMissing = () => (isNodeReady(node) ? [] : [node.bundled])
  // The Node of each platform is an optional package, which the user's npm settings may exclude.
  await runNpm(['ci', '--include=optional'], { node: process.execPath, cwd: runtime, lock, label, findMissing })
  const trial = spawnSync(node.path, ['--version'], { cwd: root, encoding: 'utf8' })
  if (trial.status !== 0) throw new SetupError(explainUnsupported(node.major))
}

function explainUnsupported(major) {
  return [
    `Countersign needs Node ${major}, and brings its own only for Linux with glibc on arm64 and x64.`,
    `This is Node ${process.versions.node} on ${process.platform} ${process.arch}.`,
    `Install Node ${major}, put it first on PATH, and run the same command again.`,
  ].join('\n')
}

function readJson(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
}
