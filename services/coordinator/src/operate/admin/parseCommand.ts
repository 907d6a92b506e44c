import { isProofStatus, isSlug, type ProofStatus, proofStatuses } from '@countersign/protocol'
import { parseArguments } from '@countersign/service'
import type { WebhookStatus } from '../../store/webhooks.ts'

const webhookStatuses: readonly string[] = ['pending', 'delivered', 'dead'] satisfies WebhookStatus[]

export const USAGE = `usage: npm run admin -- COMMAND

  proofs [--status STATUS] [--limit N] [--json]   lists proofs, the oldest first, and says why each is where it is
  receipt SLUG [--out FILE]                       writes a receipt, also one whose pin failed, to FILE or the standard output:
                                                  of version 1 as JSON, of version 2 as a CAR with all that it names
  collateral SLUG [--out FILE]                    writes the collateral that this receipt was verified with
  webhooks [--status WHICH] [--limit N] [--json]  lists webhooks, the oldest first, and says why each is where it is
  webhooks --retry ID                             sends those of this id that were given up again; "all" for every one
  check [--out FILE] [--against FILE]             reads every proof: whether its receipt is the one that its CID names, or can be made;
                                                  writes a list of them to FILE; compares with such a list of before
  retention [--json]                              what receipts take in the database, and what has left it
  export --from TIME --to TIME --out FILE         writes the proofs that were signed in that time, with all their blocks, as a CAR
  export --check FILE                             whether an export is whole; needs no database
  --help                                          says this

STATUS is one of ${proofStatuses.join(', ')} (default: the two that are pending), WHICH one of ${webhookStatuses.join(', ')} (default: dead).
TIME is as in 2026-01-31 or 2026-01-31T12:00:00Z; the proofs of --to itself are not included.
Reads DATABASE_URL or DATABASE_URL_FILE.
An export lists receipts that it cannot rebuild as missing.
Changes nothing, unless --retry is given.

Example: npm run admin -- proofs --status pin_failed --limit 10
Exit codes: 0 done, 1 not found, not whole, receipts missing, faults found or no database, 2 wrong arguments.`

export type Command =
  | { kind: 'help' }
  | { kind: 'proofs'; statuses: readonly ProofStatus[]; limit: number; isJson: boolean }
  | { kind: 'webhooks'; status: WebhookStatus; limit: number; isJson: boolean }
  | { kind: 'retry'; id: string | undefined }
  | { kind: 'receipt' | 'collateral'; slug: string; out: string | undefined }
  | { kind: 'check'; out: string | undefined; against: string | undefined }
  | { kind: 'retention'; isJson: boolean }
  | { kind: 'export'; from: number; to: number; out: string }
  | { kind: 'checkExport'; file: string }
  | { kind: 'fault'; fault: string }

const OPTIONS = {
  status: { type: 'string' },
  limit: { type: 'string' },
  json: { type: 'boolean' },
  out: { type: 'string' },
  retry: { type: 'string' },
  against: { type: 'string' },
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
  const { status, limit = '50', retry } = values
  if (!/^[1-9]\d{0,4}$/.test(limit)) return fault('--limit: expected a number from 1 to 99999')
  if (name === 'webhooks') {
    if (rest.length > 0) return fault(`webhooks takes no ${rest[0]}`)
    if (retry !== undefined) {
      if (status !== undefined || values.limit !== undefined || values.json) return fault('--retry stands alone')
      if (retry !== 'all' && !/^msg_[0-9a-f]{32}$/.test(retry))
        return fault('--retry: expected the id of a webhook, or all')
      return { kind: 'retry', id: retry === 'all' ? undefined : retry }
    }
    if (status !== undefined && !isWebhookStatus(status)) return fault(`--status: ${status} is no status of a webhook`)
    return { kind: 'webhooks', status: status ?? 'dead', limit: Number(limit), isJson: values.json === true }
  }
  if (retry !== undefined) return fault(`${name} takes no --retry`)
  if (name === 'proofs') {
    if (rest.length > 0) return fault(`proofs takes no ${rest[0]}`)
    if (status !== undefined && !isProofStatus(status)) return fault(`--status: ${status} is no status`)
    const statuses = status === undefined ? (['pending_pin', 'pending_onchain'] as const) : [status]
    return { kind: 'proofs', statuses, limit: Number(limit), isJson: values.json === true }
  }
  if (name === 'check') {
    if (rest.length > 0) return fault(`check takes no ${rest[0]}`)
    return { kind: 'check', out: values.out, against: values.against }
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

function isWebhookStatus(text: string): text is WebhookStatus {
  return webhookStatuses.includes(text)
}

function parseExport(values: { from?: string; to?: string; out?: string; check?: string }): Command {
  const { from, to, out, check } = values
  if (check !== undefined) {
    if (from !== undefined || to !== undefined || out !== undefined) return fault('--check is for a file alone')
    return { kind: 'checkExport', file: check }
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
