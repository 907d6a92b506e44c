import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol'
import { isCid, toCid } from '@countersign/receipt'
import type { Block } from './pinner.ts'

export type PinErrorCode =
  /** Retry later: the service is unreachable, slow, incomplete or failing. */
  | 'pin_unavailable'
  /** Fix the configuration, or read `details`: the service rejects the credentials or the upload. */
  | 'pin_refused'
  /** Don't trust the service: it returned another CID or other bytes. */
  | 'pin_mismatch'
  /** Pin again: the service doesn't have the block. */
  | 'pin_not_found'

const messages: Record<PinErrorCode, string> = {
  pin_unavailable: 'the pin service gave no answer',
  pin_refused: 'the pin service rejected the request',
  pin_mismatch: 'the pin service has another block',
  pin_not_found: 'the pin service does not have the block',
}

/** A failed pin or read. Contains neither the answer nor credentials. */
export class PinError extends ServiceError<PinErrorCode> {
  override name = 'PinError'
  constructor(code: PinErrorCode, options?: ServiceErrorOptions) {
    super(code, messages[code], options)
  }
}

/** Far larger than any receipt or collateral, and within the limit of IPFS nodes. */
export const MAX_BLOCK_LENGTH = 1_048_576

/** Checks size and CID before anything is sent. */
export function assertBlock({ cid, bytes }: Block): void {
  if (bytes.length > MAX_BLOCK_LENGTH) throw new PinError('pin_refused', { details: 'larger than a block may be' })
  if (toCid(bytes) !== cid) throw new PinError('pin_mismatch', { details: 'not the CID of these bytes' })
}

/** Also keeps other text out of URLs and file names. */
export function assertCid(cid: string): void {
  if (!isCid(cid)) throw new PinError('pin_mismatch', { details: 'unsupported CID' })
}

/** Settles when the signal aborts, even if the task can't be stopped. */
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
