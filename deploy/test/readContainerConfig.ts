import { generateKeyPairSync } from 'node:crypto'
import { basename, dirname } from 'node:path'
import { codeRegisters } from '@countersign/attestation'
import { readConfig as readCoordinatorConfig } from '../../services/coordinator/src/config.ts'
import { readWorkerConfig } from '../../services/coordinator/src/publish/config.ts'
import { readConfig as readEnclaveConfig } from '../../services/enclave/src/config.ts'
import { type Container, programOf } from './containers.ts'

export type EnclaveConfig = ReturnType<typeof readEnclaveConfig>
export type CoordinatorConfig = ReturnType<typeof readCoordinatorConfig>

const hex = (bytes: number) => 'ab'.repeat(bytes)
const measurement = Object.fromEntries(codeRegisters.map((name) => [name, hex(48)]))
export const enclavePolicy = { measurements: [measurement], configHashes: [hex(32)] }
const x25519 = () =>
  Buffer.from(generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('hex')

/** Contents of mounted files by name. */
const files: Record<string, string> = {
  'database-url': 'postgres://countersign:x@postgres/countersign\n',
  'worker-database-url': 'postgres://countersign:x@postgres/countersign\n',
  'google-client-secret': 'x\n',
  'enclave-policy.json': JSON.stringify(enclavePolicy),
  'caller-policy.json': JSON.stringify({
    measurements: [`${hex(48)}:${hex(32)}`],
    configHashes: [hex(32)],
    minimumTcb: { Genoa: { snp: 23 } },
  }),
  'root-secret-policy.json': JSON.stringify({
    measurements: [measurement],
    platforms: [{ ppid: hex(16) }],
    custodians: { threshold: 2, keys: [x25519(), x25519(), x25519()] },
  }),
  'publisher-key': `0x${hex(32)}\n`,
}

/** Reads a container's configuration like its program, with its environment and files. */
export function readContainerConfig(
  container: Container,
  given: Record<string, string> = {},
  onKey: (key: string) => void = () => {},
): unknown {
  const readFile = (path: string) => {
    const isMounted = container.mounts.some((mount) => path === mount || dirname(path) === mount)
    const text = given[basename(path)] ?? files[basename(path)]
    if (!isMounted || text === undefined) throw new Error(`${container.where}: ${path} not found`)
    return text
  }
  // Set by the launcher.
  const values = { ...container.env, NODE_ENV: 'production' }
  const env = new Proxy<Record<string, string | undefined>>(values, {
    get(target, key: string) {
      onKey(key)
      return target[key]
    },
  })
  const deps = { readFile, version: '0.0.0' }
  const program = programOf(container)
  if (program === 'enclave') return readEnclaveConfig(env, deps)
  if (program === 'coordinator') return readCoordinatorConfig(env, deps)
  if (program === 'worker') return readWorkerConfig(env, deps)
  throw new Error(`${container.where} runs none of our programs`)
}
