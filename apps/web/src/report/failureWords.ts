import type { ServiceError } from '@countersign/protocol'

export type FailureWords = { title: string; advice: string }

const NO_SUCH_PROOF: FailureWords = {
  title: 'Proof not found',
  advice: 'Check that the link is complete. Its last part has 22 characters.',
}
const NOT_A_RECEIPT: FailureWords = {
  title: 'Invalid receipt',
  advice: 'Download the receipt again. It must be unchanged, byte for byte.',
}
const NOT_THE_COLLATERAL: FailureWords = {
  title: 'Wrong collateral file',
  advice: 'Choose the collateral file of this receipt, or leave it out to download it automatically.',
}
const INTERNAL: FailureWords = {
  title: 'The verifier failed',
  advice: 'Nothing was verified. Reload the page. If this keeps happening, use the command-line verifier.',
}

/** Titles and advice by error code. */
const byCode: Readonly<Record<string, FailureWords>> = {
  fetch_failed: {
    title: 'The receipt couldn’t be downloaded',
    advice: 'No gateway returned bytes that match the CID. Try again, or use another gateway with the command below.',
  },
  invalid_arguments: {
    title: 'No receipt found',
    advice: 'Check your input. To look up a transaction, enter a contract and an RPC URL under “Trust anchors”.',
  },
  proof_not_pinned: { title: 'The receipt isn’t public', advice: 'You can verify it once it’s published.' },
  chain_unavailable: { title: 'The chain is unavailable', advice: 'Try again, or enter another RPC URL.' },
  event_not_found: { title: 'No receipt found for this transaction', advice: 'Publishing can take a few minutes.' },
  receipt_too_large: NOT_A_RECEIPT,
  receipt_not_canonical: NOT_A_RECEIPT,
  receipt_malformed: NOT_A_RECEIPT,
  car_malformed: {
    title: 'Invalid CAR file',
    advice: 'The file may be incomplete. Download it again.',
  },
  car_mismatch: {
    title: 'This CAR file was changed or damaged',
    advice: 'Don’t rely on it. Download it again from another source.',
  },
  receipt_version_unsupported: {
    title: 'Unsupported receipt version',
    advice: 'This page reads versions 1 and 2. Newer receipts need a newer verifier.',
  },
  collateral_malformed: NOT_THE_COLLATERAL,
  collateral_not_named: NOT_THE_COLLATERAL,
}

export function toFailureWords({ code }: Pick<ServiceError, 'code'>): FailureWords {
  return Object.hasOwn(byCode, code) ? (byCode[code] ?? INTERNAL) : INTERNAL
}

/** Explains a failed proof request by its HTTP status. */
export function toProofFailureWords({ status }: Pick<ServiceError, 'status'>): FailureWords {
  switch (status) {
    case 404:
      return NO_SUCH_PROOF
    case 200:
      return {
        title: 'Unexpected response',
        advice: 'The response isn’t a proof. If you host this site, check “apiBaseUrl” in config.json.',
      }
    default:
      return {
        title: 'The service is unavailable',
        advice:
          'Check your connection and try again. You can also verify the receipt by its file or CID, without the service.',
      }
  }
}
