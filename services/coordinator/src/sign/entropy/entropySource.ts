import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'

/** A source of samples, unchecked: the caller checks them. */
export type EntropySource = {
  /** Its name in witnesses. */
  readonly name: string
  /** Whether its samples carry a signature that can be checked. */
  readonly isSigned: boolean
  /** 1 to 256 samples. */
  getSamples(count: number): Promise<Witness[]>
}

/** Why a source gave no samples. All of them reach callers as `entropy_unavailable`; the code is for logs and metrics. */
export type EntropySourceErrorCode =
  | 'timeout'
  | 'unreachable'
  | 'status'
  | 'unauthorized'
  | 'content_type'
  | 'size'
  | 'malformed'
  | 'too_many_samples'
  /** Distrust the source: what it says does not carry the signature of the key that is pinned. */
  | 'wrong_signature'

/** A source that could not be asked, or whose answer is none. Carries nothing of the answer, and no credentials. */
export class EntropySourceError extends ServiceError<EntropySourceErrorCode> {
  override name = 'EntropySourceError'
  constructor(code: EntropySourceErrorCode, options?: ServiceErrorOptions) {
    super(code, 'the entropy source gave no samples', options)
  }
}
