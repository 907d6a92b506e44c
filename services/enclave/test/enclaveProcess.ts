import type { ChildProcess } from 'node:child_process'
import { type Environment, mains, type Service, startService } from '@countersign/testing/launcher'
import { satelliteKey } from './witness.ts'

/** An enclave as a separate process that reads only its environment. */
export type EnclaveProcess = Pick<Service, 'child' | 'kill'> & {
  url: string
  /** Its output so far. */
  output: string[]
}

/** Starts an enclave that may exit by itself. */
export function spawnEnclave(env: Environment): { child: ChildProcess; output: string[] } {
  const output: string[] = []
  const { child } = startService({ name: 'enclave', main: mains.enclave, env, onLine: (line) => output.push(line) })
  return { child, output }
}

/** Starts an enclave and waits until it serves, or until it has logged another line, for example that it waits for custodians. */
export async function startEnclave(env: Environment, startedMessage = 'Started the enclave'): Promise<EnclaveProcess> {
  const output: string[] = []
  const { started, child, kill } = startService({
    name: 'enclave',
    main: mains.enclave,
    env: { PORT: '0', MOCK_ATTESTATION: 'true', QUOTE_SOURCE: 'mock', ENTROPY_PUBLIC_KEY: satelliteKey, ...env },
    startedMessage,
    onLine: (line) => output.push(line),
  })
  const { address } = await started
  return { url: String(address), child, output, kill }
}
