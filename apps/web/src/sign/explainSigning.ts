import type { ServiceError } from '@countersign/sdk'
import { type Explanation, NOTHING_SIGNED, type OffChainCode } from '../words/explainError.ts'

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

const EXPLANATIONS: Record<OffChainCode, Explanation> = {
  unsupported_method: {
    title: 'This is not signed here',
    advice: `Transactions, messages and typed data are signed, bare hashes are not. ${NOTHING_SIGNED}`,
  },
  invalid_message: {
    title: 'This message cannot be signed',
    advice: `It holds half a character, or bytes that cannot be read. ${NOTHING_SIGNED}`,
  },
  invalid_typed_data: {
    title: 'This request cannot be read in one way only',
    advice: `The app that made it should correct it, or ask for the chain that this wallet is on. ${NOTHING_SIGNED}`,
  },
  opening_mismatch: {
    title: 'The service answered with a wrong opening',
    advice:
      'What was signed is right, but its proof could never be opened with what came along. Do not trust this service until its operator has explained it.',
  },
  message_too_large: {
    title: 'This is longer than the service signs',
    advice: `Sign something shorter. ${NOTHING_SIGNED}`,
  },
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
      return Object.hasOwn(EXPLANATIONS, code) ? EXPLANATIONS[code as OffChainCode] : undefined
  }
}
