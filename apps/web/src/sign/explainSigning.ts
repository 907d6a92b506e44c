import type { ServiceError } from '@countersign/sdk'
import type { Explanation } from '../words/explainError.ts'

const PART_MISSING: Explanation = {
  title: 'A part of this page did not load',
  advice: 'The connection dropped, or the app was updated. Load the page again. Nothing was signed.',
}

/** What is not sent anywhere by itself does no harm if it is signed again. */
const OPENING_LOST: Explanation = {
  title: 'It may have been signed',
  advice:
    'The answer of the service was lost, and the opening with it. If the history shows it, its proof can never be opened. Signing again makes a new signature with a proof of its own.',
}

/** What the general words do not say of a message or typed data that was to be signed. The SDK's `details` tell what was lost. */
export function explainSigning({
  code,
  details = '',
}: Pick<ServiceError, 'code' | 'details'>): Explanation | undefined {
  switch (code) {
    case 'network_unreachable':
    case 'request_timeout':
    case 'response_invalid':
      if (details === 'reload the page') return PART_MISSING
      // They begin with the call: of those before the signing nothing can have been signed.
      return details.startsWith('POST /sign/') ? OPENING_LOST : undefined
    default:
      return undefined
  }
}
