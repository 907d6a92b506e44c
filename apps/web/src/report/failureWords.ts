import type { ServiceError } from '@countersign/protocol'

export type FailureWords = { title: string; advice: string }

const NO_SUCH_PROOF: FailureWords = {
  title: 'There is no such proof',
  advice: 'The service knows no proof under this link. Check that it is complete: a slug has 22 characters.',
}
const NOT_A_RECEIPT: FailureWords = {
  title: 'This is not a receipt',
  advice: 'Get the receipt again, unchanged: not a byte of it may differ.',
}
const NOT_THE_COLLATERAL: FailureWords = {
  title: 'A file is not the collateral of this receipt',
  advice: 'Leave it out, and the collateral is fetched by its CID; or give the file that the receipt names.',
}
const INTERNAL: FailureWords = {
  title: 'The verifier on this page did not work',
  advice: 'Load the page again. If this persists, use the command line. Nothing was verified.',
}

/** Why there is no verdict, by the code of the error. */
const byCode: Readonly<Record<string, FailureWords>> = {
  fetch_failed: {
    title: 'The receipt could not be fetched',
    advice:
      'No gateway sent the bytes that the CID names. Nothing else is believed. Try again, or ask another gateway with the command below.',
  },
  invalid_arguments: {
    title: 'This does not lead to a receipt',
    advice: 'Check what you gave. For a transaction, set a contract and a node under “My own” anchors.',
  },
  proof_not_pinned: { title: 'The receipt is not public', advice: 'There is nothing to verify until it is.' },
  chain_unavailable: { title: 'The chain could not be asked', advice: 'Try again, or enter another node.' },
  event_not_found: { title: 'No receipt is published for this transaction', advice: 'A fresh one takes some minutes.' },
  receipt_too_large: NOT_A_RECEIPT,
  receipt_not_canonical: NOT_A_RECEIPT,
  receipt_malformed: NOT_A_RECEIPT,
  car_malformed: {
    title: 'This is not the CAR file of a receipt',
    advice: 'It may have been cut short. Get it again, unchanged.',
  },
  car_mismatch: {
    title: 'This CAR file was changed or damaged',
    advice: 'Do not rely on it. Get it again from another source.',
  },
  receipt_version_unsupported: {
    title: 'This is not a receipt that this page knows',
    advice: 'This page reads versions 1 and 2. A newer receipt needs a newer verifier.',
  },
  collateral_malformed: NOT_THE_COLLATERAL,
  collateral_not_named: NOT_THE_COLLATERAL,
}

export function toFailureWords({ code }: Pick<ServiceError, 'code'>): FailureWords {
  return Object.hasOwn(byCode, code) ? (byCode[code] ?? INTERNAL) : INTERNAL
}

/** Why the service's answer to a proof's slug is of no use, by the HTTP status of that answer. */
export function toProofFailureWords({ status }: Pick<ServiceError, 'status'>): FailureWords {
  switch (status) {
    case 404:
      return NO_SUCH_PROOF
    case 200:
      return {
        title: 'Something else answered in place of the service',
        advice: 'What came is not a proof. If you host this site, check “apiBaseUrl” in its config.json.',
      }
    default:
      return {
        title: 'The service cannot be asked right now',
        advice: 'Check your connection. With the receipt’s file or CID you can verify it without the service.',
      }
  }
}
