import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { ConfigError, describeFault } from '@countersign/service'
import { checkProofs, formatList, type ListedProof, parseList } from './operate/admin/checkProofs.ts'
import { describeRetention, explain, explainWebhook } from './operate/admin/explain.ts'
import { exportCollateral, exportReceipt } from './operate/admin/exportReceipt.ts'
import { openUnchanged } from './operate/admin/openUnchanged.ts'
import { type Command, parseCommand, USAGE } from './operate/admin/parseCommand.ts'
import { checkExport } from './proofs/export/checkExport.ts'
import { exportRange } from './proofs/export/exportCar.ts'
import { ExportFileError } from './proofs/export/exportFile.ts'
import { readDatabaseUrl } from './publish/config.ts'
import type { Database } from './store/openDatabase.ts'
import { listProofs } from './store/proofs.ts'
import { countReceipts } from './store/retention.ts'
import { listWebhooks, retryWebhooks } from './store/webhooks.ts'
import { toReason } from './toReason.ts'

type DatabaseCommand = Exclude<Command, { kind: 'help' | 'fault' | 'checkExport' }>

async function run(command: DatabaseCommand, database: Database): Promise<number> {
  const { db } = database
  if (command.kind === 'proofs') {
    const now = Date.now()
    const lists = await Promise.all(command.statuses.map((status) => listProofs(db, { status, limit: command.limit })))
    const proofs = lists.flat().map((proof) => ({ ...proof, explanation: explain(proof, now) }))
    if (command.isJson) console.log(JSON.stringify(proofs, undefined, 2))
    else if (proofs.length === 0) console.log(`No proof is ${command.statuses.join(' or ')}.`)
    else
      for (const { slug, status, explanation } of proofs) console.log(`${slug}  ${status.padEnd(15)}  ${explanation}`)
    return 0
  }
  if (command.kind === 'webhooks') {
    const now = Date.now()
    const listed = await listWebhooks(db, command)
    const webhooks = listed.map((webhook) => ({ ...webhook, explanation: explainWebhook(webhook, now) }))
    if (command.isJson) console.log(JSON.stringify(webhooks, undefined, 2))
    else if (webhooks.length === 0) console.log(`No webhook is ${command.status}.`)
    else
      for (const { id, type, receiver, explanation } of webhooks)
        console.log(`${id}  ${type}  ${receiver}  ${explanation}`)
    return 0
  }
  if (command.kind === 'retry') {
    const count = await retryWebhooks(db, command)
    console.log(`${count} webhook(s) will be sent again.`)
    return count === 0 ? 1 : 0
  }
  if (command.kind === 'check') return check(command, db)
  if (command.kind === 'retention') {
    const count = await countReceipts(db)
    console.log(command.isJson ? JSON.stringify(count, undefined, 2) : describeRetention(count))
    return 0
  }
  if (command.kind === 'export') return writeExport(db, command)
  const exported = await (command.kind === 'receipt' ? exportReceipt : exportCollateral)(db, command.slug)
  if ('fault' in exported) {
    console.error(exported.fault)
    return 1
  }
  const { bytes } = exported
  if (command.out === undefined) process.stdout.write(bytes)
  else writeFileSync(command.out, bytes)
  return 0
}

async function check({ out, against }: Extract<Command, { kind: 'check' }>, db: Database['db']): Promise<number> {
  const earlier = against === undefined ? [] : parseList(readFileSync(against, 'utf8'))
  if (out !== undefined) writeFileSync(out, '')
  const onList = (proofs: ListedProof[]) => void (out !== undefined && appendFileSync(out, formatList(proofs)))
  const { counts, matching, makeable, dropped, faults } = await checkProofs(db, { earlier, onList })
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const byStatus = Object.entries(counts).flatMap(([status, count]) => (count === 0 ? [] : [`${count} ${status}`]))
  console.log(`${total} proofs${total === 0 ? '' : `: ${byStatus.join(', ')}`}`)
  console.log(`${matching} receipts match their CIDs, ${makeable} can be built, ${dropped} are only on IPFS`)
  if (against !== undefined) console.log(`${earlier.length} proofs on the earlier list`)
  for (const fault of faults) console.error(fault)
  console.log(faults.length === 0 ? 'No faults.' : `${faults.length} faults.`)
  return faults.length === 0 ? 0 : 1
}

async function writeExport(
  db: Database['db'],
  { from, to, out }: Extract<Command, { kind: 'export' }>,
): Promise<number> {
  const onProgress = (proofs: number) => console.error(`${proofs} proofs`)
  try {
    const { proofs, missing, root, bytes } = await exportRange({ db }, { from, to, path: out, onProgress })
    console.log(`Wrote ${proofs} proofs (${bytes} bytes) to ${out}, root ${root}`)
    if (missing > 0) console.error(describeMissing(missing))
    return missing === 0 ? 0 : 1
  } catch (error) {
    if (!(error instanceof ExportFileError || isFileError(error))) throw error
    console.error(`No file was written: ${error.message}.`)
    return 1
  }
}

function describeMissing(count: number): string {
  return `${count} receipts are missing: they left the database, and this release can't rebuild the same bytes. The index lists them.`
}

/** A system error about the named file. Its message has the path. */
function isFileError(error: unknown): error is Error {
  return error instanceof Error && 'syscall' in error && 'path' in error
}

async function checkFile(file: string): Promise<number> {
  try {
    const { root, proofs, blocks, missing, faults } = await checkExport(file)
    if (faults.length > 0) console.error(`Incomplete:\n${faults.join('\n')}`)
    else if (missing > 0) console.error(`Incomplete: the index lists ${missing} of ${proofs} receipts as missing.`)
    else console.log(`Complete: ${proofs} proofs in ${blocks} blocks, root ${root}.`)
    return faults.length === 0 && missing === 0 ? 0 : 1
  } catch (error) {
    if (!isFileError(error)) throw error
    console.error(`${error.message}.`)
    return 1
  }
}

function readFile(path: string): string {
  return readFileSync(path, 'utf8')
}

function fault(setting: string, problem: string, fix = ''): never {
  throw new ConfigError([{ setting, problem, fix }])
}

const command = parseCommand(process.argv.slice(2))
if (command.kind === 'help') {
  console.log(USAGE)
} else if (command.kind === 'fault') {
  console.error(`${command.fault}\n\n${USAGE}`)
  process.exitCode = 2
} else if (command.kind === 'checkExport') {
  process.exitCode = await checkFile(command.file)
} else {
  try {
    const database = await openUnchanged(readDatabaseUrl(process.env, readFile, fault))
    process.exitCode = await run(command, database).finally(() => database.close())
  } catch (error) {
    const { code, reason } = toReason(error)
    if (error instanceof ConfigError) console.error(error.faults.map(describeFault).join('\n'))
    else console.error(`Could not read the database: ${reason ?? code}.`)
    process.exitCode = 1
  }
}
