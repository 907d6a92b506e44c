import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { lockFile, setupFolder } from './paths.mjs'

const timeLimitMs = Number(process.env.COUNTERSIGN_SETUP_TIMEOUT_S || 15 * 60) * 1000

/** Runs `work` while holding the lock: two concurrent installs would corrupt node_modules. */
export async function withSetupLock(work) {
  mkdirSync(setupFolder, { recursive: true })
  let isAnnounced = false
  while (!tryToTake()) {
    const holder = readHolder()
    if (holder && isAbandoned(holder)) drop(holder)
    else if (!isAnnounced) {
      isAnnounced = true
      console.error('Another set-up is running here; waiting for it.')
    }
    await sleep(200)
  }
  try {
    return await work({ deadlineMs: Date.now() + timeLimitMs, addProcess })
  } finally {
    rmSync(lockFile, { force: true })
  }
}

function tryToTake() {
  try {
    writeFileSync(lockFile, `${process.pid}\n`, { flag: 'wx' })
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  }
}

/** After kill -9 of a set-up its npm continues to write, so the lock lasts until npm ends too. */
function addProcess(pid) {
  appendFileSync(lockFile, `${pid}\n`)
}

function readHolder(file = lockFile) {
  try {
    const pids = readFileSync(file, 'utf8').split('\n').filter(Boolean).map(Number)
    return { pids, ageMs: Date.now() - statSync(file).mtimeMs }
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
}

function isAbandoned({ pids, ageMs }) {
  // A lock is empty between its creation and its first line.
  if (pids.length === 0) return ageMs > 5_000
  // After a restart of the machine another program may have the pid, so an old lock doesn't count.
  return !pids.some(isAlive) || ageMs > timeLimitMs + 60_000
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** Renames first: if two processes find the same dead lock, the slower one must not remove the new lock of the faster one. */
function drop(holder) {
  const aside = `${lockFile}.${process.pid}`
  try {
    renameSync(lockFile, aside)
  } catch (error) {
    if (error.code === 'ENOENT') return
    throw error
  }
  const moved = readHolder(aside)
  if (moved?.pids.join() !== holder.pids.join()) renameSync(aside, lockFile)
  else rmSync(aside, { force: true })
}
