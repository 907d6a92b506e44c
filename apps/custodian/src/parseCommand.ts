import { isSafeUrl } from '@countersign/protocol'
import { parseArguments } from '@countersign/service'

export const USAGE = `usage: npm run custodian -- COMMAND

A custodian keeps one share of a root secret, sealed to a key that only the custodian has.

  keygen FILE
      Creates a key file that only you can read (mode 0600), and prints the public key for the policy.
  check BACKUP --policy FILE [--key FILE]
      Verifies that a genuine enclave of the policy made the backup, for the policy's custodians, and that
      it is unchanged. With --key, also that this key opens its share.
  submit BACKUP --key FILE --enclave URL --policy FILE --config-hash HEX [--backup-policy FILE]
      Verifies the backup and the waiting enclave, and sends the enclave this key's share, sealed to it.
      --policy and --config-hash say which enclave you consent to: take them from your own build and your
      own files, never from the enclave. --backup-policy is the policy under which the backup was made,
      where the enclave has another.

  --mock    simulated silicon, for drills: it proves nothing about hardware
  --help    this text

Example: npm run custodian -- keygen alice.key
Exit codes: 0 done, 1 it failed, 2 wrong arguments.`

export type Command =
  | { kind: 'help' }
  | { kind: 'fault'; fault: string }
  | { kind: 'keygen'; file: string }
  | { kind: 'check'; backup: string; policy: string; key?: string; isMock: boolean }
  | {
      kind: 'submit'
      backup: string
      policy: string
      backupPolicy: string
      key: string
      enclave: string
      configHash: string
      isMock: boolean
    }

const OPTIONS = {
  policy: { type: 'string' },
  'backup-policy': { type: 'string' },
  key: { type: 'string' },
  enclave: { type: 'string' },
  'config-hash': { type: 'string' },
  mock: { type: 'boolean' },
} as const

const ALLOWED: Record<string, readonly string[]> = {
  keygen: [],
  check: ['policy', 'key', 'mock'],
  submit: ['policy', 'backup-policy', 'key', 'enclave', 'config-hash', 'mock'],
}

export function parseCommand(parameters: string[]): Command {
  if (parameters.length === 0) return { kind: 'help' }
  const parsed = parseArguments(parameters, OPTIONS, { takesPositionals: true })
  if (parsed.kind !== 'run') return parsed
  const { values, positionals } = parsed
  const [name = '', file = '', ...rest] = positionals
  const allowed = Object.hasOwn(ALLOWED, name) ? ALLOWED[name] : undefined
  if (allowed === undefined) return fault('the command is keygen, check or submit')
  if (file === '' || rest.length > 0) return fault(`${name} takes one file`)
  const foreign = Object.keys(values).find((option) => !allowed.includes(option))
  if (foreign !== undefined) return fault(`${name} has no --${foreign}`)
  const { policy, key, enclave, 'config-hash': configHash, mock: isMock = false } = values
  if (name === 'keygen') return { kind: 'keygen', file }
  if (!policy) return fault(`${name} needs --policy`)
  if (key === '') return fault(`${name} has an empty --key`)
  if (name === 'check') return { kind: 'check', backup: file, policy, ...(key === undefined ? {} : { key }), isMock }
  if (!key) return fault('submit needs --key')
  if (!enclave || !isSafeUrl(enclave)) return fault('submit needs --enclave: https, or http on loopback')
  if (!configHash || !/^[0-9a-f]{64}$/.test(configHash)) return fault('submit needs --config-hash: 32 bytes of hex')
  const backupPolicy = values['backup-policy'] ?? policy
  return { kind: 'submit', backup: file, policy, backupPolicy, key, enclave, configHash, isMock }
}

function fault(text: string): Command {
  return { kind: 'fault', fault: text }
}
