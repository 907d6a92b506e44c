import { parseArgs } from 'node:util'
import { isProofStatus, isSlug, type ProofStatus, proofStatuses } from '@countersign/protocol'

export const USAGE = `usage: npm run admin -- COMMAND

  proofs [--status STATUS] [--limit N] [--json]   lists proofs, the oldest first, and says why each is where it is
  receipt SLUG [--out FILE]                       writes a receipt, also one whose pin failed, to FILE or the standard output
  collateral SLUG [--out FILE]                    writes the collateral that this receipt was verified with

STATUS is one of ${proofStatuses.join(', ')} (default: the two that are pending).
Reads DATABASE_URL or DATABASE_URL_FILE, or the embedded database in DATA_DIR while no coordinator runs on it. Changes nothing.`

export type Command =
  | { kind: 'help' }
  | { kind: 'proofs'; statuses: readonly ProofStatus[]; limit: number; isJson: boolean }
  | { kind: 'receipt' | 'collateral'; slug: string; out: string | undefined }
  | { kind: 'fault'; fault: string }

export function parseCommand(args: readonly string[]): Command {
  let parsed: ReturnType<typeof parse>
  try {
    parsed = parse(args)
  } catch (error) {
    return fault(error instanceof Error ? error.message : 'the arguments cannot be read')
  }
  const { values, positionals } = parsed
  const [name, ...rest] = positionals
  if (values.help === true || name === 'help') return { kind: 'help' }
  if (name === undefined) return fault('a command is missing')
  if (name === 'proofs') {
    const { status, limit = '50' } = values
    if (rest.length > 0) return fault(`proofs takes no ${rest[0]}`)
    if (status !== undefined && !isProofStatus(status)) return fault(`--status: ${status} is no status`)
    if (!/^[1-9]\d{0,4}$/.test(limit)) return fault('--limit: expected a number from 1 to 99999')
    const statuses = status === undefined ? (['pending_pin', 'pending_onchain'] as const) : [status]
    return { kind: 'proofs', statuses, limit: Number(limit), isJson: values.json === true }
  }
  if (name !== 'receipt' && name !== 'collateral') return fault(`there is no command ${name}`)
  const [slug] = rest
  if (slug === undefined || rest.length > 1) return fault(`${name} takes one slug`)
  if (!isSlug(slug)) return fault('that is no slug')
  return { kind: name, slug, out: values.out }
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      status: { type: 'string' },
      limit: { type: 'string' },
      json: { type: 'boolean' },
      out: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
}

function fault(text: string): Command {
  return { kind: 'fault', fault: text }
}
