/** All that a line may say, by the operator's manual: what is public of the service, and nothing of people. */
const FIELDS = new Set([
  ...[
    'level',
    'time',
    'msg',
    'requestId',
    'method',
    'route',
    'status',
    'provider',
    'code',
    'durationMs',
    'reason',
    'fault',
    'address',
    'mode',
  ],
  ...[
    'configHash',
    'commitment',
    'bootId',
    'fmspc',
    'ca',
    'count',
    'size',
    'source',
    'signal',
    'url',
    'name',
    'version',
    'hash',
    'lapsesAt',
  ],
  ...['delayMs', 'requests', 'enclave', 'path', 'slug', 'cid', 'attempt', 'nonce', 'txHash', 'blockNumber'],
])

/** The one field that a caller chooses, and what it may choose. */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/

/** What is wrong with a line of the logs into which an attack tried to plant a mark. */
export function findLogFaults(line: string, mark: string): string[] {
  let fields: Record<string, unknown>
  try {
    fields = JSON.parse(line)
  } catch {
    return ['not JSON']
  }
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) return ['not JSON']
  const faults: string[] = []
  for (const [name, value] of Object.entries(fields)) {
    if (!FIELDS.has(name)) faults.push(`the field ${name}`)
    const said = String(value)
    if (said.includes('forged')) faults.push('a forged line')
    const isChosen = name === 'requestId' && REQUEST_ID.test(said)
    if (said.includes(mark) && !isChosen) faults.push(`planted text in ${name}`)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(said)) faults.push(`a control character in ${name}`)
  }
  return faults
}
