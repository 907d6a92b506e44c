import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol'
import { isCid, toCid } from '@countersign/receipt'
import type { Block } from './pinner.ts'

export type PinErrorCode =
  /** Retry later: the service cannot be reached, did not answer in time or in full, or is not well. */
  | 'pin_unavailable'
  /** Fix the configuration, or read `details`: the service will not have the credentials or the upload. */
  | 'pin_refused'
  /** Distrust the service: it names another CID, or gives other bytes, than ours. */
  | 'pin_mismatch'
  /** Pin again: the service does not hold the block. */
  | 'pin_not_found'

const messages: Record<PinErrorCode, string> = {
  pin_unavailable: 'the pin service gave no answer',
  pin_refused: 'the pin service refused',
  pin_mismatch: 'the pin service has another block',
  pin_not_found: 'the pin service does not hold the block',
}

/** A block that could not be pinned or read back. Carries nothing of the answer, and no credentials. */
export class PinError extends ServiceError<PinErrorCode> {
  override name = 'PinError'
  constructor(code: PinErrorCode, options?: ServiceErrorOptions) {
    super(code, messages[code], options)
  }
}

/** Far above any receipt or collateral, and what IPFS nodes exchange without complaint. */
export const MAX_BLOCK_LENGTH = 1_048_576

/** Before anything is sent: whether a block is its CID's can be computed here. */
export function assertBlock({ cid, bytes }: Block): void {
  if (bytes.length > MAX_BLOCK_LENGTH) throw new PinError('pin_refused', { details: 'larger than a block may be' })
  if (toCid(bytes) !== cid) throw new PinError('pin_mismatch', { details: 'not the CID of these bytes' })
}

/** Also keeps anything that is not a CID out of URLs and file names. */
export function assertCid(cid: string): void {
  if (!isCid(cid)) throw new PinError('pin_mismatch', { details: 'not a CID of ours' })
}

/** Settles at the latest when the signal aborts, even where the task itself cannot be stopped. */
export async function untilAborted<Result>(signal: AbortSignal, task: () => Promise<Result>): Promise<Result> {
  const toError = () => new PinError('pin_unavailable', { details: 'aborted' })
  if (signal.aborted) throw toError()
  let onAbort: () => void = () => {}
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(toError())
    signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([task(), aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
