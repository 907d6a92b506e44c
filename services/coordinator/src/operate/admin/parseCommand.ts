import { isProofStatus, isSlug, type ProofStatus, proofStatuses } from '@countersign/protocol'
import { parseArguments } from '@countersign/service'
import type { WebhookStatus } from '../../store/webhooks.ts'

const webhookStatuses: readonly string[] = ['pending', 'delivered', 'dead'] satisfies WebhookStatus[]

export const USAGE = `usage: npm run admin -- COMMAND

  proofs [--status STATUS] [--limit N] [--json]   lists proofs and the reason for their status, oldest first
  receipt SLUG [--out FILE]                       writes a receipt, even if its pin failed, to FILE or standard output:
                                                  version 1 as JSON, version 2 as a CAR with all its blocks
  collateral SLUG [--out FILE]                    writes the collateral of a receipt
  webhooks [--status WHICH] [--limit N] [--json]  lists webhooks and the reason for their status, oldest first
  webhooks --retry ID                             sends the dead webhooks with this id again; "all" for every dead webhook
  check [--out FILE] [--against FILE]             checks that every receipt matches its CID or can be built;
                                                  writes a list of proofs to FILE; compares with an earlier list
  retention [--json]                              shows the space that receipts use, and how many were dropped
  export --from TIME --to TIME --out FILE         writes the proofs signed in that period, with all blocks, as a CAR
  export --check FILE                             checks that an export is complete; needs no database
  --help                                          prints this help

STATUS is one of ${proofStatuses.join(', ')} (default: the two that are pending), WHICH one of ${webhookStatuses.join(', ')} (default: dead).
TIME is a date or a UTC time, such as 2026-01-31 or 2026-01-31T12:00:00Z. --to is exclusive.
Reads DATABASE_URL or DATABASE_URL_FILE.
An export lists receipts that it can't rebuild as missing.
Only --retry changes anything.

Example: npm run admin -- proofs --status pin_failed --limit 10
Exit codes: 0 success, 1 not found, incomplete, faults found or no database, 2 invalid arguments.`

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
  if (name === undefined) return fault('missing command')
  const { status, limit = '50', retry } = values
  if (!/^[1-9]\d{0,4}$/.test(limit)) return fault('--limit: expected a number from 1 to 99999')
  if (name === 'webhooks') {
    if (rest.length > 0) return fault(`webhooks: unexpected argument ${rest[0]}`)
    if (retry !== undefined) {
      if (status !== undefined || values.limit !== undefined || values.json)
        return fault('--retry: no other option is allowed')
      if (retry !== 'all' && !/^msg_[0-9a-f]{32}$/.test(retry))
        return fault('--retry: expected the id of a webhook, or all')
      return { kind: 'retry', id: retry === 'all' ? undefined : retry }
    }
    if (status !== undefined && !isWebhookStatus(status)) return fault(`--status: unknown webhook status ${status}`)
    return { kind: 'webhooks', status: status ?? 'dead', limit: Number(limit), isJson: values.json === true }
  }
  if (retry !== undefined) return fault(`--retry: not allowed with ${name}`)
  if (name === 'proofs') {
    if (rest.length > 0) return fault(`proofs: unexpected argument ${rest[0]}`)
    if (status !== undefined && !isProofStatus(status)) return fault(`--status: unknown status ${status}`)
    const statuses = status === undefined ? (['pending_pin', 'pending_onchain'] as const) : [status]
    return { kind: 'proofs', statuses, limit: Number(limit), isJson: values.json === true }
  }
  if (name === 'check') {
    if (rest.length > 0) return fault(`check: unexpected argument ${rest[0]}`)
    return { kind: 'check', out: values.out, against: values.against }
  }
  if (name === 'retention' || name === 'export') {
    if (rest.length > 0) return fault(`${name}: unexpected argument ${rest[0]}`)
    return name === 'export' ? parseExport(values) : { kind: name, isJson: values.json === true }
  }
  if (name !== 'receipt' && name !== 'collateral') return fault(`unknown command ${name}`)
  const [slug] = rest
  if (slug === undefined || rest.length > 1) return fault(`${name}: expected one slug`)
  if (!isSlug(slug)) return fault(`invalid slug: ${slug}`)
  return { kind: name, slug, out: values.out }
}

function isWebhookStatus(text: string): text is WebhookStatus {
  return webhookStatuses.includes(text)
}

function parseExport(values: { from?: string; to?: string; out?: string; check?: string }): Command {
  const { from, to, out, check } = values
  if (check !== undefined) {
    if (from !== undefined || to !== undefined || out !== undefined) return fault('--check: no other option is allowed')
    return { kind: 'checkExport', file: check }
  }
  if (from === undefined || to === undefined || out === undefined)
    return fault('export: expected --from, --to and --out')
  const [first, last] = [parseTime(from), parseTime(to)]
  if (first === undefined) return fault(`--from: invalid time ${from}: expected 2026-01-31 or 2026-01-31T12:00:00Z`)
  if (last === undefined) return fault(`--to: invalid time ${to}: expected 2026-01-31 or 2026-01-31T12:00:00Z`)
  if (first >= last) return fault('--from: expected a time before --to')
  return { kind: 'export', from: first, to: last, out }
}

/** Accepts a date or a UTC time. Others would depend on the machine's time zone. */
function parseTime(text: string): number | undefined {
  const isTime = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?Z)?$/.test(text)
  const time = isTime ? Date.parse(text) : Number.NaN
  // Date.parse accepts the 31st of every month.
  return Number.isNaN(time) || !new Date(time).toISOString().startsWith(text.slice(0, 10)) ? undefined : time
}

function fault(text: string): Command {
  return { kind: 'fault', fault: text }
}
