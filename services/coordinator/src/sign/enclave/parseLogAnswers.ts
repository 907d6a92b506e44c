import { LOG_ENTRY_BYTES, LogError, parseCheckpoint, parseNote, parseVkey } from '@countersign/log'
import type {
  AppendedEntries,
  AttestResponse,
  EnclaveSettings,
  LogResponse,
  ReleaseResponse,
} from '@countersign/protocol'
import { AnswerError, toHex, toMembers, toNatural, toSignedStatement } from './answerMembers.ts'

/* What an enclave says about its log. Whether the log is what it should be is judged where it is kept. */

/** There where the settings have a log, and nowhere else: its own origins are among them, and each of them has its key. */
export function parseLogs(value: unknown, { log }: EnclaveSettings): Pick<AttestResponse, 'logs'> {
  if (log === null && value === undefined) return {}
  if (log === null) throw new AnswerError('logs')
  const { own, keys } = toMembers(value, ['own', 'keys'])
  const isOwn = (origin: unknown) => log.origins.includes(origin as string)
  if (!Array.isArray(own) || own.length === 0 || !own.every(isOwn)) throw new AnswerError('logs')
  if (new Set(own).size !== own.length) throw new AnswerError('logs')
  if (!Array.isArray(keys) || keys.length !== log.origins.length) throw new AnswerError('logs')
  for (const [index, key] of keys.entries()) assertKeyOf(key, log.origins[index])
  return { logs: { own, keys } }
}

function assertKeyOf(value: unknown, origin: string | undefined) {
  if (typeof value !== 'string') throw new AnswerError('logs')
  const { name, type } = parse('logs', () => parseVkey(value))
  if (name !== origin || type !== 'ed25519') throw new AnswerError('logs')
}

export function parseAppended(value: unknown): AppendedEntries {
  return toAppended(toMembers(value, ['origin', 'from', 'entries', 'checkpoint']))
}

export function parseLogResponse(value: unknown): LogResponse {
  const { bootId, log } = toMembers(value, ['bootId', 'log'])
  return { bootId: toHex(bootId, 16, 'bootId'), log: log === null ? null : toOpenLog(log) }
}

function toOpenLog(value: unknown): NonNullable<LogResponse['log']> {
  const { isOpen, ...appended } = toMembers(value, ['origin', 'from', 'entries', 'checkpoint', 'isOpen'])
  if (typeof isOpen !== 'boolean') throw new AnswerError('isOpen')
  return { ...toAppended(appended), isOpen }
}

/** The answer to so many leaves. */
export function parseReleaseResponse(value: unknown, leafCount: number): ReleaseResponse {
  const { statements } = toMembers(value, ['statements'])
  if (!Array.isArray(statements) || statements.length !== leafCount) throw new AnswerError('statements')
  return {
    statements: statements.map((statement) =>
      statement === null ? null : toSignedStatement(toMembers(statement, ['statement'], ['subject', 'opening'])),
    ),
  }
}

/** The entries end where the checkpoint's tree does. */
function toAppended(members: Record<keyof AppendedEntries, unknown>): AppendedEntries {
  const { origin, entries, checkpoint } = members
  const from = toNatural(members.from, Number.MAX_SAFE_INTEGER, 'from')
  if (!Array.isArray(entries)) throw new AnswerError('entries')
  const { origin: signedOrigin, size } = parse('checkpoint', () =>
    parseCheckpoint(parseNote(checkpoint as string).text),
  )
  if (origin !== signedOrigin) throw new AnswerError('origin')
  if (size !== from + entries.length) throw new AnswerError('entries')
  return {
    origin: signedOrigin,
    from,
    entries: entries.map((entry) => toHex(entry, LOG_ENTRY_BYTES, 'entries')),
    checkpoint: checkpoint as string,
  }
}

function parse<Value>(name: string, read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    throw error instanceof LogError ? new AnswerError(name) : error
  }
}
