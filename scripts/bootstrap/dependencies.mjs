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

/** The inputs of an install. npm writes its hidden lockfile on every install, so the file's time reveals manual runs. */
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
  // Not `npm ci`: it rejects our lockfile, which lists only the native packages of supported platforms.
  const install = ['install', '--no-save', '--include=dev', '--include=optional', '--ignore-scripts']
  try {
    // If every package is there, npm only checks them, which must work without a network.
    if (findMissing().length > 0 || !(await succeeds(runNpm([...install, '--offline'], options)))) {
      await runNpm(install, options)
    }
  } catch (error) {
    // The mark tells the next set-up that an interrupted npm left incomplete packages.
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

/** npm doesn't repair half-extracted packages, so after an interruption node_modules is deleted. */
function wipeInterruptedInstall() {
  const cutShort = existsSync(installingMark) || (existsSync(nodeModules) && !existsSync(hiddenLockfile))
  if (!cutShort) return
  console.error('An earlier install was interrupted; starting over.')
  const folders = readLockEntries().map(({ path }) => path.match(/^.*?node_modules(?=\/)/)?.[0])
  for (const folder of new Set(folders)) if (folder) rmSync(join(root, folder), { recursive: true, force: true })
}

/**
 * The packages of the lockfile that must be installed. An optional package counts only if it names its platforms and this is one of them.
 * Otherwise it may belong to another platform, and npm skips it.
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
