import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { lockFile, setupFolder } from './paths.mjs'

const timeLimitMs = Number(process.env.COUNTERSIGN_SETUP_TIMEOUT_S || 15 * 60) * 1000

/** Runs `work` while holding the lock: two installs into one node_modules would tear it apart. */
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

/** npm outlives a set-up that was killed with -9 and goes on writing, so the lock holds until it has ended too. */
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
  // Between its creation and its first line a lock is empty.
  if (pids.length === 0) return ageMs > 5_000
  // The age guards against a pid that another program got after a restart of the machine.
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

/** By renaming: of two that found the same dead lock, the slower must not remove the lock the quicker has just taken. */
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
