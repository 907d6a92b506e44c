import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { BackupError, callPeer, PeerError } from '@countersign/root-secret'
import { CustodianError, parseCommand, USAGE } from './parseCommand.ts'
import { runCommand } from './runCommand.ts'

/** Our own errors are written for users. Other errors may contain anything. */
function toReason(error: unknown): string {
  if (error instanceof PeerError)
    return error.details === undefined ? error.message : `${error.message}: ${error.details}`
  if (error instanceof CustodianError || error instanceof BackupError) return error.message
  return `unexpected ${error instanceof Error ? error.name : typeof error}`
}

const command = parseCommand(process.argv.slice(2))
if (command.kind === 'help') {
  console.log(USAGE)
} else if (command.kind === 'fault') {
  console.error(`${command.fault}\n\n${USAGE}`)
  process.exitCode = 2
} else {
  const clock = { now: () => Date.now() }
  const random = (length: number) => new Uint8Array(randomBytes(length))
  const wait = async (durationMs: number) => void (await setTimeout(durationMs))
  try {
    await runCommand({ callPeer, clock, random, wait, print: (line) => console.log(line) }, command)
  } catch (error) {
    console.error(`Failed: ${toReason(error)}`)
    process.exitCode = 1
  }
}
