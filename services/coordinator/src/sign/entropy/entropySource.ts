import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'

/** A source of unchecked samples. */
export type EntropySource = {
  /** The source's name in samples. */
  readonly name: string
  /** Whether the samples carry a signature that can be verified. */
  readonly isSigned: boolean
  /** Returns 1 to 256 samples. */
  getSamples(count: number): Promise<Witness[]>
}

/** Why a source returned no samples. Callers get `entropy_unavailable`; this code goes to logs and metrics. */
export type EntropySourceErrorCode =
  | 'timeout'
  | 'unreachable'
  | 'status'
  | 'unauthorized'
  | 'content_type'
  | 'size'
  | 'malformed'
  | 'too_many_samples'
  /** Don't trust the source: its samples are not signed with the pinned key. */
  | 'wrong_signature'

/** A source that can't be reached, or whose answer is invalid. Contains no part of the answer and no credentials. */
export class EntropySourceError extends ServiceError<EntropySourceErrorCode> {
  override name = 'EntropySourceError'
  constructor(code: EntropySourceErrorCode, options?: ServiceErrorOptions) {
    super(code, 'the entropy source gave no samples', options)
  }
}
