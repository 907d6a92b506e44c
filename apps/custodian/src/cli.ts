import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { BackupError } from './backup/backup.ts'
import { CustodianError } from './custodian/custodianError.ts'
import { parseCommand, USAGE } from './custodian/parseCommand.ts'
import { runCommand } from './custodian/runCommand.ts'
import { callPeer, PeerError } from './transfer/callPeer.ts'

/** What to tell: errors of our own are meant for people, others may hold anything. */
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
