import {
  type CoordinatorAttestation,
  fromHex,
  preimages,
  toHex,
  toPreimage,
  toWebhookKeyMessage,
  toWebhookKeyText,
} from '@countersign/protocol'
import { CoordinatorError } from '../../../errors.ts'
import type { SelfReport } from './selfReport.ts'

export type GetAttestationDeps = {
  selfReport: Pick<SelfReport, 'mode' | 'publicKey' | 'current' | 'sign'>
  /** The keys that sign webhooks, or undefined while they are unknown. */
  getWebhookKeys(): readonly Uint8Array[] | undefined
}

/**
 * `GET /health/attestation`. Answers from memory, without the database and without the firmware, which hosts limit to about one request per
 * second. The nonce is tagged, so that a signature over it can't pass for a release or a call to the enclave.
 */
export function getAttestation(
  deps: GetAttestationDeps,
  { nonce }: { nonce: string | undefined },
): CoordinatorAttestation {
  if (nonce !== undefined && !/^(?:[0-9a-f]{2}){1,64}$/.test(nonce)) {
    const details = 'nonce is not 1 to 64 bytes in lower-case hex'
    throw new CoordinatorError('invalid_request', 'invalid nonce', { details })
  }
  const { selfReport } = deps
  const { selfAttestation, expiresAt } = getCurrent(selfReport)
  const { reportHex, certificates, measurement, configHash, fetchedAt } = selfAttestation
  const attestation: CoordinatorAttestation = {
    vendor: 'amd-sev-snp',
    mode: selfReport.mode,
    report: reportHex,
    certificates,
    measurement,
    publicKey: selfReport.publicKey,
    configHash,
    fetchedAt,
    expiresAt,
    ...toWebhookKeys(selfReport, deps.getWebhookKeys()),
  }
  if (nonce === undefined) return attestation
  const message = toPreimage(preimages.healthNonce, { nonce: fromHex(nonce) })
  return { ...attestation, nonce, signature: toHex(selfReport.sign(message)) }
}

/**
 * The report covers only the coordinator's own key. That key signs the list of webhook keys, which all processes share and which outlive each
 * process.
 */
function toWebhookKeys(
  { sign }: Pick<SelfReport, 'sign'>,
  keys: readonly Uint8Array[] | undefined,
): Pick<CoordinatorAttestation, 'webhookKeys'> {
  if (keys === undefined) return { webhookKeys: null }
  if (keys.length === 0) return {}
  const webhookKeys = keys.map((key) => ({
    key: toWebhookKeyText(key),
    signature: toHex(sign(toWebhookKeyMessage(key))),
  }))
  return { webhookKeys }
}

function getCurrent(selfReport: Pick<SelfReport, 'current'>) {
  try {
    return selfReport.current()
  } catch (error) {
    if (error instanceof CoordinatorError) throw error
    const details = 'the coordinator has no valid attestation'
    throw new CoordinatorError('attestation_invalid', 'no valid attestation', { details, cause: error })
  }
}
