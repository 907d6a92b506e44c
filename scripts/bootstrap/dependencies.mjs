import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { NpmError, networkFailed, runNpm } from './npm.mjs'
import { installingMark, nodeModules, root, setupFolder } from './paths.mjs'
import { isForThisMachine } from './platform.mjs'

const lockfile = join(root, 'package-lock.json')
const hiddenLockfile = join(nodeModules, '.package-lock.json')
const stampFile = join(nodeModules, '.countersign-ready')

export function areDependenciesReady(node) {
  if (!existsSync(stampFile) || !existsSync(hiddenLockfile) || existsSync(installingMark)) return false
  return readFileSync(stampFile, 'utf8') === toStamp(node)
}

/** What an install depends on. npm writes its hidden lockfile on every install, so its time shows one run by hand. */
function toStamp(node) {
  const lockHash = createHash('sha256').update(readFileSync(lockfile)).digest('hex')
  const { platform, arch } = process
  const installedAtMs = Math.trunc(statSync(hiddenLockfile).mtimeMs)
  return `${JSON.stringify({ platform, arch, nodeMajor: node.major, lockHash, installedAtMs })}\n`
}

export async function installDependencies(node, lock) {
  wipeInterruptedInstall()
  mkdirSync(setupFolder, { recursive: true })
  writeFileSync(installingMark, '')
  const expected = expectedPackages()
  let output
  try {
    // Not `npm ci`: the lockfile lists the natives of the platforms we support and no others, which ci refuses.
    const flags = ['--no-save', '--include=dev', '--include=optional', '--ignore-scripts']
    const countArrived = () => expected.filter(isThere).length
    const progress = { total: expected.length, countArrived }
    ;({ output } = await runNpm(['install', ...flags], {
      node: node.path,
      cwd: root,
      lock,
      label: 'Installing dependencies',
      progress,
    }))
  } catch (error) {
    // npm that ends by itself has put back what was there; only one that was cut short leaves a mess.
    if (error instanceof NpmError && error.reason !== 'timeout') rmSync(installingMark, { force: true })
    throw error
  }
  rmSync(installingMark, { force: true })
  // npm drops optional packages, our natives among them, when a fetch fails, and still ends with 0.
  const missing = expected.filter((entry) => !isInstalled(entry))
  if (missing.length > 0) {
    const names = missing.map(({ path }) => path.replace(/^.*node_modules\//, '')).join(', ')
    throw new NpmError(networkFailed(output) ? 'unreachable' : 'incomplete', names)
  }
  writeFileSync(stampFile, toStamp(node))
}

/** npm does not repair half-extracted packages, so after an interruption nothing of node_modules can be kept. */
function wipeInterruptedInstall() {
  const cutShort = existsSync(installingMark) || (existsSync(nodeModules) && !existsSync(hiddenLockfile))
  if (!cutShort) return
  console.error('An earlier install was interrupted; starting afresh.')
  const folders = readLockEntries().map(({ path }) => path.match(/^.*?node_modules(?=\/)/)?.[0])
  for (const folder of new Set(folders)) if (folder) rmSync(join(root, folder), { recursive: true, force: true })
}

/**
 * The lockfile's packages that must be here. An optional one counts when it names the machines it is for and this is
 * one; without that, it may belong to a package for other machines, which npm rightly leaves out.
 */
export function expectedPackages() {
  return readLockEntries().filter((entry) => {
    if (!entry.path.includes('node_modules/') || !isForThisMachine(entry)) return false
    return !(entry.optional || entry.devOptional) || Boolean(entry.os || entry.cpu)
  })
}

function readLockEntries() {
  const { packages } = JSON.parse(readFileSync(lockfile, 'utf8'))
  return Object.entries(packages).map(([path, entry]) => ({ path, ...entry }))
}

function isThere({ path }) {
  return existsSync(join(root, path, 'package.json'))
}

function isInstalled(entry) {
  if (!isThere(entry)) return false
  if (entry.link) return true
  return JSON.parse(readFileSync(join(root, entry.path, 'package.json'), 'utf8')).version === entry.version
}
