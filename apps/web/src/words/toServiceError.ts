import { ServiceError } from '@countersign/sdk'
import { BaseError } from 'viem'

/** Any failure as the SDK's error. What viem throws is the node's fault; its own text may name the node's address, with a key in it. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error
  if (error instanceof BaseError) {
    return new ServiceError('rpc_failed', 'the RPC failed', { details: error.details, cause: error, retryable: true })
  }
  return new ServiceError('internal', 'unexpected failure', { cause: error })
}
