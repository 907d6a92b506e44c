import { ServiceError } from '@countersign/protocol/core'

/** Why a guest got no evidence. */
export type EvidenceErrorCode =
  /** Fix the call: report data is exactly 64 bytes. */
  | 'report_data_length'
  /** Fix the configuration: a privilege level is 0, 1, 2 or 3. */
  | 'privlevel_invalid'
  /** Fix the guest: mount configfs, load the guest driver, or grant access; `details` says which. */
  | 'configfs_unavailable'
  /** Fix the configuration: this guest runs on other hardware than the source expects. */
  | 'provider_mismatch'
  /** Retry. If this persists, find the process that writes into our configfs entry. */
  | 'generation_mismatch'
  /** Retry later: the driver is busy with an earlier request, or its host does not respond. */
  | 'evidence_busy'
  /** Retry later, or allow more time. */
  | 'evidence_timeout'
  /** Check the kernel log: the driver refused for the reason in `details`. */
  | 'evidence_io'
  /** Distrust the source: it did not return a TDX quote or SEV-SNP report. */
  | 'evidence_malformed'
  /** Distrust the source: the response is larger than real evidence. */
  | 'evidence_too_large'
  /** Distrust the source: the evidence is for other report data than requested. */
  | 'evidence_mismatch'
  /** Use certificates from elsewhere (a file, or AMD's KDS): the host's table is malformed. */
  | 'cert_table_malformed'
  /** Fix the deployment: the agent's socket is not mounted into this container, or the agent is down. */
  | 'agent_unreachable'
  /** Read `details`: the agent can't provide a quote. */
  | 'agent_refused'
  /** Distrust the agent, or its version: the response is not that of `GetQuote`. */
  | 'agent_answer_malformed'

/** The guest could not get evidence, or the evidence is for another request. */
export class EvidenceError extends ServiceError<EvidenceErrorCode> {
  override name = 'EvidenceError'
}

export function evidenceTimeout(timeoutMs: number) {
  return new EvidenceError('evidence_timeout', 'no evidence in time', { details: `after ${timeoutMs} ms` })
}

/** The error code of the system or Node. */
export function toErrno(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'unknown'
}
