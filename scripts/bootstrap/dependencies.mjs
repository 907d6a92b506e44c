import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { NpmError, runNpm } from './npm.mjs'
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
  const findMissing = () => expected.filter((entry) => !isInstalled(entry)).map(toName)
  const progress = { total: expected.length, countArrived: () => expected.filter(isThere).length }
  const options = { node: node.path, cwd: root, lock, label: 'Installing dependencies', progress, findMissing }
  // Not `npm ci`: the lockfile lists the natives of the platforms we support and no others, which ci refuses.
  const install = ['install', '--no-save', '--include=dev', '--include=optional', '--ignore-scripts']
  try {
    // With every package there npm has only to look it over, which must work without a network.
    if (findMissing().length > 0 || !(await succeeds(runNpm([...install, '--offline'], options)))) {
      await runNpm(install, options)
    }
  } catch (error) {
    // npm that was cut short leaves a mess, which the mark tells the next set-up.
    if (error instanceof NpmError && error.isTidy) rmSync(installingMark, { force: true })
    throw error
  }
  writeFileSync(stampFile, toStamp(node))
  rmSync(installingMark, { force: true })
}

async function succeeds(npmRun) {
  try {
    await npmRun
    return true
  } catch (error) {
    if (error instanceof NpmError && error.isTidy) return false
    throw error
  }
}

function toName({ path }) {
  return path.replace(/^.*node_modules\//, '')
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
