import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { readSecret } from '@countersign/service'
import { checkProofs, formatList, type ListedProof, parseList } from './admin/checkProofs.ts'
import { explain, explainWebhook } from './admin/explain.ts'
import { type Command, parseCommand, USAGE } from './admin/parseCommand.ts'
import { assembleReceipt } from './pipeline/assembleReceipt.ts'
import { findPins } from './store/findPins.ts'
import { listProofs } from './store/inspect.ts'
import { listWebhooks, retryWebhooks } from './store/inspectWebhooks.ts'
import { type Database, openDatabase } from './store/openDatabase.ts'
import { toReason } from './toReason.ts'

type Asked = Exclude<Command, { kind: 'help' | 'fault' }>

async function run(command: Asked, database: Database): Promise<number> {
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
    console.log(`${count} to be sent again.`)
    return count === 0 ? 1 : 0
  }
  if (command.kind === 'check') return check(command, db)
  const [work] = await findPins(db, [command.slug])
  if (work === undefined) {
    console.error('There is no such proof.')
    return 1
  }
  const blocks = assembleReceipt(work)
  // Frozen bytes are what was, or will be, pinned.
  const bytes = command.kind === 'collateral' ? blocks.collateral.bytes : (work.receiptBytes ?? blocks.receipt.bytes)
  if (command.out === undefined) process.stdout.write(bytes)
  else writeFileSync(command.out, bytes)
  return 0
}

async function check({ out, against }: Extract<Command, { kind: 'check' }>, db: Database['db']): Promise<number> {
  const earlier = against === undefined ? [] : parseList(readFileSync(against, 'utf8'))
  if (out !== undefined) writeFileSync(out, '')
  const onList = (proofs: ListedProof[]) => void (out !== undefined && appendFileSync(out, formatList(proofs)))
  const { counts, matching, makeable, letGo, faults } = await checkProofs(db, { earlier, onList })
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const byStatus = Object.entries(counts).flatMap(([status, count]) => (count === 0 ? [] : [`${count} ${status}`]))
  console.log(`${total} proofs${total === 0 ? '' : `: ${byStatus.join(', ')}`}`)
  console.log(`${matching} receipts match their CIDs, ${makeable} can be made, ${letGo} are with IPFS alone`)
  if (against !== undefined) console.log(`${earlier.length} were on the list`)
  for (const fault of faults) console.error(fault)
  console.log(faults.length === 0 ? 'Nothing is missing.' : `${faults.length} faults.`)
  return faults.length === 0 ? 0 : 1
}

const command = parseCommand(process.argv.slice(2))
if (command.kind === 'help') {
  console.log(USAGE)
} else if (command.kind === 'fault') {
  console.error(`${command.fault}\n\n${USAGE}`)
  process.exitCode = 2
} else {
  const { DATA_DIR = '.countersign' } = process.env
  const readFile = (path: string) => readFileSync(path, 'utf8')
  const fault = (text: string) => {
    throw new Error(text)
  }
  try {
    const databaseUrl = readSecret(process.env, 'DATABASE_URL', readFile, fault)
    const database = await openDatabase(databaseUrl ? { databaseUrl } : { dataDir: DATA_DIR })
    process.exitCode = await run(command, database).finally(() => database.close())
  } catch (error) {
    const { code, reason } = toReason(error)
    console.error(`The database cannot be read: ${reason ?? code}. Is a coordinator running on the embedded one?`)
    process.exitCode = 1
  }
}
