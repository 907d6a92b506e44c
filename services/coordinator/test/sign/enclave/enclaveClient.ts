import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { createVerifier } from '@countersign/attestation'
import { createSimulator, simulatedRoots } from '@countersign/attestation/simulator'
import type { OpenSessionResponse } from '@countersign/protocol'
import { expect, onTestFinished } from 'vitest'
import { toItem } from '../../../../enclave/test/items.ts'
import {
  createPlatformReader,
  createSimulatedCollateralStore,
} from '../../../src/sign/enclave/collateral/collateralStore.ts'
import { createHttpEnclave, type HttpEnclaveDeps } from '../../../src/sign/enclave/httpEnclave.ts'
import type { KeyEnclave } from '../../../src/sign/enclave/keyEnclave.ts'

export const clock = { now: () => Date.now() }
const roots = simulatedRoots()
const collateral = createSimulatedCollateralStore({ simulatorFactory: (at) => createSimulator({ at }), clock })
export const verifier = createVerifier({ roots })
export const simulator = createSimulator({ at: new Date() })

function createCaller() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  return {
    publicKey: publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex'),
    sign: (message: Uint8Array) => sign(null, message, privateKey),
  }
}

/** An adapter for these addresses, with its log. */
export function setUp(urls: readonly string[], changes: Partial<HttpEnclaveDeps> = {}) {
  const lines: ({ msg: string } & Record<string, unknown>)[] = []
  const write = (line: { msg: string }) => void lines.push(line)
  const enclave = createHttpEnclave({
    urls,
    caller: createCaller(),
    verifier,
    collateral,
    readPlatform: createPlatformReader(),
    policy: {},
    isMock: true,
    clock,
    random: (length) => new Uint8Array(randomBytes(length)),
    log: { info: write, warn: write, error: write },
    ...changes,
  })
  onTestFinished(() => enclave.stop())
  const attestations = () => lines.filter(({ msg }) => msg === 'Attested an enclave').length
  return { enclave, lines, attestations }
}

export const withCode = (code: string) => expect.objectContaining({ name: 'CoordinatorError', code })
export const unavailable = withCode('enclave_unavailable')

export async function signOne(enclave: KeyEnclave, session: OpenSessionResponse) {
  const { results } = await enclave.signItems([toItem(session)])
  const [result] = results
  if (result === undefined || 'error' in result) return result?.error
  if (!('statement' in result)) return 'no statement'
  return 'signature' in result.statement ? result.statement.signature : 'a statement of version 2'
}
