import { isSafeUrl } from '@countersign/protocol/core'
import { type ParsedRootSecretPolicy, parseRootSecretPolicy } from '@countersign/root-secret'
import { type Env, type Fault, fileFix } from '@countersign/service'

/** A root secret that only enclaves hold, and how this start obtains it. */
export type AttestedSource = {
  kind: 'attested'
  policy: ParsedRootSecretPolicy
  from:
    | { kind: 'genesis'; backupPath: string }
    | { kind: 'join'; urls: readonly string[]; backupPath?: string }
    | { kind: 'recover'; backupPath: string; newBackupPath?: string }
  /** Intel's service for collateral, or a cache of it. */
  collateralUrl: string
}

const INTEL_PCS = 'https://api.trustedservices.intel.com'
const MAX_DONORS = 16

/** The settings of `ROOT_SECRET=attested`. Other kinds don't use them. */
const SETTINGS = [
  'ROOT_SECRET_FROM',
  'ROOT_SECRET_POLICY_FILE',
  'ROOT_SECRET_BACKUP_FILE',
  'ROOT_SECRET_NEW_BACKUP_FILE',
] as const

export function readAttestedSource(
  env: Env,
  { readFile, isAttested, isMock }: { readFile(path: string): string; isAttested: boolean; isMock: boolean },
  fault: Fault,
): AttestedSource | undefined {
  if (!isAttested) {
    for (const name of SETTINGS) if (env[name]) fault(name, 'only for ROOT_SECRET=attested')
    return undefined
  }
  const source: AttestedSource = {
    kind: 'attested',
    policy: readPolicy(env, { readFile, isMock }, fault),
    from: readFrom(env, fault),
    collateralUrl: (env.COLLATERAL_URL || INTEL_PCS).replace(/\/+$/, ''),
  }
  if (!isSafeUrl(source.collateralUrl) || !isBare(source.collateralUrl)) {
    fault('COLLATERAL_URL', 'expected https, or http on loopback, without credentials, query or fragment')
  }
  return source
}

function readPolicy(
  env: Env,
  { readFile, isMock }: { readFile(path: string): string; isMock: boolean },
  fault: Fault,
): ParsedRootSecretPolicy {
  const none: ParsedRootSecretPolicy = {
    policy: { measurements: [], custodians: { threshold: 0, keys: [] } },
    policyHash: '',
  }
  const path = env.ROOT_SECRET_POLICY_FILE
  if (!path) {
    fault('ROOT_SECRET_POLICY_FILE', 'required for ROOT_SECRET=attested')
    return none
  }
  let text: string
  try {
    text = readFile(path)
  } catch {
    fault('ROOT_SECRET_POLICY_FILE', 'cannot be read', fileFix('ROOT_SECRET_POLICY_FILE'))
    return none
  }
  const parsed = parseRootSecretPolicy(text, { requirePlatforms: !isMock })
  if (!('faults' in parsed)) return parsed
  for (const text of parsed.faults) fault('ROOT_SECRET_POLICY_FILE', text)
  return none
}

function readFrom(env: Env, fault: Fault): AttestedSource['from'] {
  const value = env.ROOT_SECRET_FROM ?? ''
  const { ROOT_SECRET_BACKUP_FILE: backupPath = '', ROOT_SECRET_NEW_BACKUP_FILE: newBackupPath = '' } = env
  if (value !== 'recover' && newBackupPath !== '')
    fault('ROOT_SECRET_NEW_BACKUP_FILE', 'only for ROOT_SECRET_FROM=recover')
  if (value.startsWith('join:')) {
    const urls = readDonors(value.slice('join:'.length), fault)
    return { kind: 'join', urls, ...(backupPath === '' ? {} : { backupPath }) }
  }
  if (value !== 'genesis' && value !== 'recover') {
    fault('ROOT_SECRET_FROM', 'expected genesis, recover or join:URL,URL')
    return { kind: 'join', urls: [] }
  }
  if (backupPath === '') fault('ROOT_SECRET_BACKUP_FILE', `required for ROOT_SECRET_FROM=${value}`)
  if (value === 'genesis') return { kind: 'genesis', backupPath }
  if (newBackupPath !== '' && newBackupPath === backupPath)
    fault('ROOT_SECRET_NEW_BACKUP_FILE', 'expected another file than ROOT_SECRET_BACKUP_FILE')
  return { kind: 'recover', backupPath, ...(newBackupPath === '' ? {} : { newBackupPath }) }
}

function readDonors(text: string, fault: Fault): string[] {
  const urls = text.split(',').map((url) => url.trim())
  const isValid = urls.length <= MAX_DONORS && new Set(urls).size === urls.length && urls.every(isOrigin)
  if (!isValid)
    fault(
      'ROOT_SECRET_FROM',
      'expected join: and comma-separated enclaves (https://host:port, or http on loopback), without duplicates',
    )
  return urls
}

/** Requires scheme, host and port only, so that no name or password reaches a log. */
function isOrigin(text: string): boolean {
  return isSafeUrl(text) && isBare(text) && new URL(text).pathname === '/'
}

function isBare(text: string): boolean {
  const { username, password, search, hash } = new URL(text)
  return [username, password, search, hash].every((part) => part === '')
}
