import { hash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What dstack starts a guest with (its `app-compose.json`, manifest version 2). The order of the members is that of the file. */
export type AppCompose = {
  /** Names that an operator may set from outside, without changing the measurement. */
  allowed_envs: string[]
  docker_compose_file: string
  features: string[]
  /** dstack's own proxy. */
  gateway_enabled: boolean
  /** The key service, which keeps the root secret. */
  kms_enabled: boolean
  local_key_provider_enabled: boolean
  manifest_version: 2
  name: string
  no_instance_id: boolean
  public_logs: boolean
  public_sysinfo: boolean
  public_tcbinfo: boolean
  runner: 'docker-compose'
  secure_time: boolean
}

const MEMBERS: Record<keyof AppCompose, (value: unknown) => boolean> = {
  allowed_envs: isTextList,
  docker_compose_file: (value) => typeof value === 'string' && value !== '',
  features: isTextList,
  gateway_enabled: isBoolean,
  kms_enabled: isBoolean,
  local_key_provider_enabled: isBoolean,
  manifest_version: (value) => value === 2,
  name: (value) => typeof value === 'string' && /^[a-z0-9-]+$/.test(value),
  no_instance_id: isBoolean,
  public_logs: isBoolean,
  public_sysinfo: isBoolean,
  public_tcbinfo: isBoolean,
  runner: (value) => value === 'docker-compose',
  secure_time: isBoolean,
}

function isBoolean(value: unknown): boolean {
  return typeof value === 'boolean'
}

function isTextList(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

/**
 * The exact text of the file. Sorted and without white space, so that every tool writes the same bytes.
 * No environment may come from outside: the enclave's whole configuration is in what is measured.
 */
export function toAppCompose(dockerComposeFile: string): string {
  const value: AppCompose = {
    allowed_envs: [],
    docker_compose_file: dockerComposeFile,
    features: ['kms'],
    // Its TLS key is vouched for by a quote, so nobody may end TLS before it.
    gateway_enabled: false,
    kms_enabled: true,
    local_key_provider_enabled: false,
    manifest_version: 2,
    name: 'countersign-enclave',
    no_instance_id: false,
    public_logs: false,
    public_sysinfo: false,
    public_tcbinfo: true,
    runner: 'docker-compose',
    secure_time: true,
  }
  return JSON.stringify(value)
}

/** Strict: a member that dstack would not know, or take as something else, is a fault. */
export function parseAppCompose(text: string): AppCompose {
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('app-compose is not an object')
  const entries = Object.entries(value)
  const faults = entries.flatMap(([name]) => (Object.hasOwn(MEMBERS, name) ? [] : [`${name} is unknown`]))
  const members = new Map(entries)
  for (const [name, isFine] of Object.entries(MEMBERS))
    if (!isFine(members.get(name))) faults.push(`${name} is not what it should be`)
  if (faults.length > 0) throw new Error(faults.join('\n'))
  return value as AppCompose
}

/** What the guest's event `compose-hash` carries: SHA-256 of the file's exact bytes. */
export function hashAppCompose(text: string): string {
  return hash('sha256', text, 'hex')
}

if (import.meta.main) {
  const folder = import.meta.dirname
  const text = toAppCompose(readFileSync(join(folder, 'docker-compose.yaml'), 'utf8'))
  writeFileSync(join(folder, 'app-compose.json'), text)
  process.stdout.write(`${hashAppCompose(text)}  app-compose.json\n`)
}
