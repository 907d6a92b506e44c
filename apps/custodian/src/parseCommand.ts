import { isSafeUrl } from '@countersign/protocol'
import { parseArguments } from '@countersign/service'

export const USAGE = `usage: npm run custodian -- COMMAND

A custodian keeps one share of a root secret, sealed to a key that only the custodian has.

  keygen FILE
      Creates a key file that only you can read (mode 0600), and prints the public key for the policy.
  check BACKUP --policy FILE [--key FILE] [--enclave URL] [--backup-policy FILE] [--allow-loss LOSS]
      Verifies that a genuine enclave of the policy made the backup for the policy's custodians, and that
      it is unchanged. Prints that enclave's configuration. With --key, also checks that the key opens its share.
      With --enclave, runs the checks of submit and sends nothing. Use it to read the new configuration.
  submit BACKUP --key FILE --enclave URL --policy FILE --config-hash HEX [--backup-policy FILE] [--allow-loss LOSS]
      Verifies the backup and the waiting enclave, prints the enclave's configuration and its differences
      from the backup's, and sends the enclave this key's share, sealed to it.
      --policy and --config-hash name the enclave that you accept. Take them from your own build and your
      own files, never from the enclave. If the backup was made under a different policy, pass that as
      --backup-policy. A policy must list platforms, except with --mock and for --backup-policy.
      --allow-loss accepts a configuration that drops one of the backup's protections:
        log                      no log, another origin, fewer of its witnesses, or a quorum that new witnesses
                                 reach without a quorum of the old ones
        entropy                  no signed samples, or a source that the backup's configuration does not list
        sessions                 sessions without a browser key, where the backup's configuration allows none
        issuer:ISSUER=AUDIENCE   sign-ins of this issuer, or the origin of its keys
      Repeat it for each one. Without it, submit fails.

  --mock    simulated hardware, for drills: proves nothing about real hardware
  --help    show this text

Example: npm run custodian -- keygen alice.key
Exit codes: 0 done, 1 failed, 2 wrong arguments.`

export type Command =
  | { kind: 'help' }
  | { kind: 'fault'; fault: string }
  | { kind: 'keygen'; file: string }
  | ({ kind: 'check'; key?: string; enclave?: string } & Files)
  | ({ kind: 'submit'; key: string; enclave: string; configHash: string } & Files)

type Files = { backup: string; policy: string; backupPolicy: string; allowedLosses: readonly string[]; isMock: boolean }

const OPTIONS = {
  policy: { type: 'string' },
  'backup-policy': { type: 'string' },
  key: { type: 'string' },
  enclave: { type: 'string' },
  'config-hash': { type: 'string' },
  'allow-loss': { type: 'string', multiple: true },
  mock: { type: 'boolean' },
} as const

const ALLOWED: Record<string, readonly string[]> = {
  keygen: [],
  check: ['policy', 'backup-policy', 'key', 'enclave', 'allow-loss', 'mock'],
  submit: ['policy', 'backup-policy', 'key', 'enclave', 'config-hash', 'allow-loss', 'mock'],
}

export function parseCommand(parameters: string[]): Command {
  if (parameters.length === 0) return { kind: 'help' }
  const parsed = parseArguments(parameters, OPTIONS, { takesPositionals: true })
  if (parsed.kind !== 'run') return parsed
  const { values, positionals } = parsed
  const [name = '', file = '', ...rest] = positionals
  const allowed = Object.hasOwn(ALLOWED, name) ? ALLOWED[name] : undefined
  if (allowed === undefined) return fault('expected a command: keygen, check or submit')
  if (file === '' || rest.length > 0) return fault(`${name} expects one file`)
  const foreign = Object.keys(values).find((option) => !allowed.includes(option))
  if (foreign !== undefined) return fault(`${name} does not support --${foreign}`)
  const { policy, key, enclave, 'config-hash': configHash, mock: isMock = false } = values
  const { 'allow-loss': allowedLosses = [] } = values
  if (name === 'keygen') return { kind: 'keygen', file }
  if (!policy) return fault(`${name} requires --policy`)
  if (key === '') return fault(`${name} has an empty --key`)
  const needsEnclave = name === 'submit' || enclave !== undefined
  if (needsEnclave && (!enclave || !isSafeUrl(enclave))) {
    return fault(`${name} requires --enclave with an https URL, or http on loopback`)
  }
  const foreignLoss = allowedLosses.find((loss) => !/^(?:log|entropy|sessions|issuer:.+=.+)$/.test(loss))
  if (foreignLoss !== undefined) {
    return fault('invalid --allow-loss: expected log, entropy, sessions or issuer:ISSUER=AUDIENCE')
  }
  const files = { backup: file, policy, backupPolicy: values['backup-policy'] ?? policy, allowedLosses, isMock }
  if (name === 'check') {
    return { kind: 'check', ...files, ...(key === undefined ? {} : { key }), ...(enclave ? { enclave } : {}) }
  }
  if (!key) return fault('submit requires --key')
  if (!configHash || !/^[0-9a-f]{64}$/.test(configHash))
    return fault('submit requires --config-hash with 32 bytes of hex')
  return { kind: 'submit', ...files, key, enclave: enclave ?? '', configHash }
}

function fault(text: string): Command {
  return { kind: 'fault', fault: text }
}

/** An error for the custodian. */
export class CustodianError extends Error {
  override name = 'CustodianError'
}
