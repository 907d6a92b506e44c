import { createVerifier } from '@countersign/attestation'
import { attestationPublishedTopic, type Hex } from '@countersign/protocol'
import { GOLDEN_SIGNED_AT } from '../spec/createSpecFiles.ts'
import type { ChainLog } from '../src/check/chainReader.ts'
import type { StepId } from '../src/check/steps.ts'
import { type CheckReceiptOptions, checkReceipt, type ReceiptCheck } from '../src/checkReceipt.ts'
import {
  createReceiptSimulator,
  type SimulatedAttestation,
  type SimulatedAttestationOptions,
} from '../src/simulator/index.ts'

/* A simulated service, and a reader who knows its roots and keys as simulated. */

export const service = createReceiptSimulator()
export const verifier = createVerifier({ roots: service.roots })

type Files = Pick<SimulatedAttestation, 'bytes' | 'collateral'> & Pick<CheckReceiptOptions, 'anchors' | 'blocks'>

export function check({ bytes, collateral, anchors, blocks = {} }: Files, changes: Partial<CheckReceiptOptions> = {}) {
  const { roots, mockEntropyKeys } = service
  return checkReceipt(bytes, collateral, { roots, verifier, anchors, mockEntropyKeys, blocks, ...changes })
}

/** The same evidence, for a reader who takes the simulated roots and the satellite for real ones. */
export function asHardware(): Partial<CheckReceiptOptions> {
  const roots = service.roots.map((root) => ({ ...root, mode: 'hardware' as const }))
  return { roots, verifier: createVerifier({ roots }), mockEntropyKeys: [] }
}

export const issue = (options: Partial<SimulatedAttestationOptions>) =>
  service.issueV2({ signedAt: GOLDEN_SIGNED_AT, ...options })

export type Steps = Pick<ReceiptCheck, 'steps'>

export const stepOf = ({ steps }: Steps, id: StepId) => steps.find((step) => step.id === id)
export const statusOf = (result: Steps, id: StepId) => stepOf(result, id)?.status
export const detailOf = (result: Steps, id: StepId) => stepOf(result, id)?.detail
export const failures = ({ steps }: Steps) => steps.filter(({ status }) => status === 'fail').map(({ id }) => id)

/** An event's data with the text of a CID: offset, length, characters, padding. */
export function encodeCid(cid: string): string {
  const word = (value: number) => value.toString(16).padStart(64, '0')
  const characters = Buffer.from(cid).toString('hex')
  return `0x${word(32)}${word(cid.length)}${characters.padEnd(Math.ceil(characters.length / 64) * 64, '0')}`
}

/** The contract's event for a receipt of this wallet. */
export function createEvent(parameters: {
  contract: string
  wallet: Hex
  txHash: Hex
  cid: string
  blockTime: Date
}): ChainLog {
  const { contract, wallet, txHash, cid, blockTime } = parameters
  return {
    address: contract,
    topics: [attestationPublishedTopic, `0x${wallet.slice(2).padStart(64, '0')}`, txHash],
    data: encodeCid(cid),
    blockNumber: 12,
    blockTime,
  }
}
