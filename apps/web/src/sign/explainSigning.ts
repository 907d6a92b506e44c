import type { ServiceError } from '@countersign/sdk'
import { type Explanation, NOTHING_SIGNED, type OffChainCode } from '../words/explainError.ts'

const PART_MISSING: Explanation = {
  title: 'Part of this page didn’t load',
  advice: 'The connection dropped, or the app was updated. Nothing was signed. Reload the page.',
}

/** A message isn't sent anywhere, so signing it again is harmless. */
const OPENING_LOST: Explanation = {
  title: 'This may have been signed',
  advice:
    'The service’s response was lost, including the opening. If the signature appears in your history, its proof can never be opened. You can sign again to get a new signature and proof.',
}

const EXPLANATIONS: Record<OffChainCode, Explanation> = {
  unsupported_method: {
    title: 'Unsupported request',
    advice: `This wallet signs transactions, messages and typed data, but not raw hashes. ${NOTHING_SIGNED}`,
  },
  invalid_message: {
    title: 'Invalid message',
    advice: `It contains invalid characters or bytes. ${NOTHING_SIGNED}`,
  },
  invalid_typed_data: {
    title: 'Invalid typed data',
    advice: `The request is ambiguous or for another chain. Only the app that created it can fix it. ${NOTHING_SIGNED}`,
  },
  opening_mismatch: {
    title: 'The service returned a wrong opening',
    advice:
      'The signature is correct, but this opening can’t open its proof. Don’t trust this service until the operator explains why.',
  },
  message_too_large: {
    title: 'Message too long',
    advice: `Shorten it and try again. ${NOTHING_SIGNED}`,
  },
}

/** Explains errors specific to messages and typed data. The SDK's `details` name the call that failed. */
export function explainSigning({
  code,
  details = '',
}: Pick<ServiceError, 'code' | 'details'>): Explanation | undefined {
  switch (code) {
    case 'network_unreachable':
    case 'request_timeout':
    case 'response_invalid':
      if (details === 'reload the page') return PART_MISSING
      // `details` start with the call. Calls before signing can't have signed anything.
      return details.startsWith('POST /sign/') ? OPENING_LOST : undefined
    default:
      return Object.hasOwn(EXPLANATIONS, code) ? EXPLANATIONS[code as OffChainCode] : undefined
  }
}
