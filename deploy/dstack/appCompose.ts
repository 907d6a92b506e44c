import { hash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The configuration with which dstack starts a guest (`app-compose.json`, manifest version 2). The members have the order of the file. */
type AppCompose = {
  /** Variables that an operator may set from outside, without changing the measurement. */
  allowed_envs: string[]
  docker_compose_file: string
  features: string[]
  /** dstack's own proxy. */
  gateway_enabled: boolean
  /** The key service that provides the root secret. */
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

/**
 * The exact text of the file: sorted and without whitespace, so that every tool writes the same bytes. It allows no variables from outside,
 * because the measurement must cover the enclave's whole configuration.
 */
export function toAppCompose(dockerComposeFile: string): string {
  const value: AppCompose = {
    allowed_envs: [],
    docker_compose_file: dockerComposeFile,
    features: ['kms'],
    // TLS must end in the enclave, because a quote covers its TLS key.
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

/** The payload of the guest's `compose-hash` event: SHA-256 of the file's bytes. */
export function hashAppCompose(text: string): string {
  return hash('sha256', text, 'hex')
}

if (import.meta.main) {
  const folder = import.meta.dirname
  const text = toAppCompose(readFileSync(join(folder, 'docker-compose.yaml'), 'utf8'))
  writeFileSync(join(folder, 'app-compose.json'), text)
  process.stdout.write(`${hashAppCompose(text)}  app-compose.json\n`)
}
