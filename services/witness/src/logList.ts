import { LogError, type NoteKey, parseVkey } from '@countersign/log'

/** The keys of each accepted log, by origin. A log may have several while it changes its key. */
export type LogList = ReadonlyMap<string, readonly NoteKey[]>

/**
 * Parses a list of logs in the witnesses' common format, `logs/v0`: after this line, a `vkey` per log, and an `origin` if it differs from the
 * key's name. `qpd` and `contact` are for people. Rejects unknown words, because a misspelled `origin` would mean another log.
 */
export function parseLogList(text: string, fault: (problem: string) => void): LogList {
  const logs: { key: NoteKey | undefined; origin: string | undefined }[] = []
  const [header, ...lines] = text.split('\n').map((line) => line.trim())
  if (header !== 'logs/v0') fault('line 1: expected logs/v0')
  for (const [index, line] of lines.entries()) {
    if (line === '' || line.startsWith('#')) continue
    const [, word = '', value = ''] = /^(\S+) +(.+)$/.exec(line) ?? []
    const current = logs.at(-1)
    const at = `line ${index + 2}`
    if (word === 'vkey')
      logs.push({
        key: readKey(value, (details) => fault(`${at}: invalid verifier key: ${details}`)),
        origin: undefined,
      })
    else if (current === undefined) fault(`${at}: expected vkey first`)
    else if (word === 'origin' && current.origin === undefined) current.origin = value
    else if (word !== 'qpd' && word !== 'contact') fault(`${at}: expected vkey, origin, qpd or contact`)
  }
  const list = new Map<string, NoteKey[]>()
  for (const { key, origin = key?.name ?? '' } of logs) {
    const keys = list.get(origin) ?? []
    if (key === undefined) continue
    if (keys.some(({ name, id }) => name === key.name && id === key.id)) fault(`duplicate key ${key.name}+${key.id}`)
    list.set(origin, [...keys, key])
  }
  return list
}

function readKey(vkey: string, fault: (problem: string) => void): NoteKey | undefined {
  try {
    return parseVkey(vkey)
  } catch (error) {
    if (!(error instanceof LogError)) throw error
    fault(error.details ?? error.message)
    return undefined
  }
}
