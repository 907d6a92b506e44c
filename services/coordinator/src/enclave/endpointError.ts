import { ServiceError } from '@countersign/protocol'
import { readCode } from '@countersign/service'
import { AnswerError } from './answerMembers.ts'
import { KeyChangedError } from './attestedTls.ts'
import { parseErrorCode } from './parseAnswers.ts'

type FailureCode =
  /** Nothing was sent. */
  | 'unreachable'
  | 'key_changed'
  /** It may have been processed. */
  | 'cut_off'
  | 'timed_out'
  | 'answer_malformed'
  | 'refused'
  /** It is not, or could not show that it is, the enclave that we trust. */
  | 'not_attested'

/** Why one enclave could not be used for one call; `details` is for the log. */
export class EndpointError extends ServiceError<FailureCode> {
  override name = 'EndpointError'
}

export function toEndpointError(cause: unknown): EndpointError {
  if (cause instanceof AnswerError) return malformed(cause)
  if (cause instanceof KeyChangedError) return failure('key_changed', undefined, cause)
  const code = readCode(cause)
  const name = cause instanceof Error ? cause.name : typeof cause
  if (name === 'TimeoutError' || name === 'AbortError') return failure('timed_out', undefined, cause)
  if (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE') return failure('cut_off', code, cause)
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE' || code?.startsWith('HPE_') || name === 'HTTPParserError') {
    return failure('answer_malformed', code, cause)
  }
  return failure('unreachable', code ?? name, cause)
}

export function refused({ status, body }: { status: number; body: unknown }): EndpointError {
  return failure('refused', parseErrorCode(body) ?? `status ${status}`)
}

export function malformed(cause: AnswerError): EndpointError {
  return failure('answer_malformed', cause.message, cause)
}

export function notAttested(details: string, cause?: unknown): EndpointError {
  return failure('not_attested', details, cause)
}

function failure(code: FailureCode, details?: string, cause?: unknown): EndpointError {
  return new EndpointError(code, 'the enclave cannot be used', { ...(details === undefined ? {} : { details }), cause })
}
