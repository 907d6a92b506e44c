import { isProofStatus, isSlug, type ProofStatus, proofStatuses } from '@countersign/protocol'
import { parseArguments } from '@countersign/service'

export const USAGE = `usage: npm run admin -- COMMAND

  proofs [--status STATUS] [--limit N] [--json]   lists proofs, the oldest first, and says why each is where it is
  receipt SLUG [--out FILE]                       writes a receipt, also one whose pin failed, to FILE or the standard output
  collateral SLUG [--out FILE]                    writes the collateral that this receipt was verified with
  retention [--json]                              what receipts take in the database, and what has left it
  export --from TIME --to TIME --out FILE         writes the proofs that were signed in that time, with all their blocks, as a CAR
  export --check FILE                             whether an export is whole; needs no database
  --help                                          says this

STATUS is one of ${proofStatuses.join(', ')} (default: the two that are pending).
TIME is as in 2026-01-31 or 2026-01-31T12:00:00Z; the proofs of --to itself are not included.
Reads DATABASE_URL or DATABASE_URL_FILE, or the embedded database in DATA_DIR while no coordinator runs on it. Changes nothing.

Example: npm run admin -- proofs --status pin_failed --limit 10
Exit codes: 0 done, 1 not found, not whole or no database, 2 wrong arguments.`

export type Command =
  | { kind: 'help' }
  | { kind: 'proofs'; statuses: readonly ProofStatus[]; limit: number; isJson: boolean }
  | { kind: 'receipt' | 'collateral'; slug: string; out: string | undefined }
  | { kind: 'retention'; isJson: boolean }
  | { kind: 'export'; from: number; to: number; out: string }
  | { kind: 'check'; file: string }
  | { kind: 'fault'; fault: string }

const OPTIONS = {
  status: { type: 'string' },
  limit: { type: 'string' },
  json: { type: 'boolean' },
  out: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  check: { type: 'string' },
} as const

export function parseCommand(args: readonly string[]): Command {
  const parsed = parseArguments(args, OPTIONS, { takesPositionals: true })
  if (parsed.kind !== 'run') return parsed
  const { values, positionals } = parsed
  const [name, ...rest] = positionals
  if (name === 'help') return { kind: 'help' }
  if (name === undefined) return fault('a command is missing')
  if (name === 'proofs') {
    const { status, limit = '50' } = values
    if (rest.length > 0) return fault(`proofs takes no ${rest[0]}`)
    if (status !== undefined && !isProofStatus(status)) return fault(`--status: ${status} is no status`)
    if (!/^[1-9]\d{0,4}$/.test(limit)) return fault('--limit: expected a number from 1 to 99999')
    const statuses = status === undefined ? (['pending_pin', 'pending_onchain'] as const) : [status]
    return { kind: 'proofs', statuses, limit: Number(limit), isJson: values.json === true }
  }
  if (name === 'retention' || name === 'export') {
    if (rest.length > 0) return fault(`${name} takes no ${rest[0]}`)
    return name === 'export' ? parseExport(values) : { kind: name, isJson: values.json === true }
  }
  if (name !== 'receipt' && name !== 'collateral') return fault(`there is no command ${name}`)
  const [slug] = rest
  if (slug === undefined || rest.length > 1) return fault(`${name} takes one slug`)
  if (!isSlug(slug)) return fault('that is no slug')
  return { kind: name, slug, out: values.out }
}

function parseExport(values: { from?: string; to?: string; out?: string; check?: string }): Command {
  const { from, to, out, check } = values
  if (check !== undefined) {
    if (from !== undefined || to !== undefined || out !== undefined) return fault('--check is for a file alone')
    return { kind: 'check', file: check }
  }
  if (from === undefined || to === undefined || out === undefined) return fault('export takes --from, --to and --out')
  const [first, last] = [parseTime(from), parseTime(to)]
  if (first === undefined) return fault(`--from: ${from} is no time, such as 2026-01-31 or 2026-01-31T12:00:00Z`)
  if (last === undefined) return fault(`--to: ${to} is no time, such as 2026-01-31 or 2026-01-31T12:00:00Z`)
  if (first >= last) return fault('--from is not before --to')
  return { kind: 'export', from: first, to: last, out }
}

/** A day, or a time in UTC: others would depend on where they are read. */
function parseTime(text: string): number | undefined {
  const isTime = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?Z)?$/.test(text)
  const time = isTime ? Date.parse(text) : Number.NaN
  // Date.parse takes the 31st of every month.
  return Number.isNaN(time) || !new Date(time).toISOString().startsWith(text.slice(0, 10)) ? undefined : time
}

function fault(text: string): Command {
  return { kind: 'fault', fault: text }
}
