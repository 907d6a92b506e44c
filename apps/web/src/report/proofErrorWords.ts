import type { ProofErrorCode } from './getProof.ts'

/** Why the service's answer is of no use, for whoever followed a link. */
export const proofErrorWords: Record<ProofErrorCode, { title: string; advice: string }> = {
  not_found: {
    title: 'There is no such proof',
    advice: 'The service knows no proof under this link. Check that it is complete: a slug has 22 characters.',
  },
  unavailable: {
    title: 'The service cannot be asked right now',
    advice: 'Check your connection. With the receipt’s file or CID you can verify it without the service.',
  },
  not_a_proof: {
    title: 'Something else answered in place of the service',
    advice: 'What came is not a proof. If you host this site, check “apiBaseUrl” in its config.json.',
  },
}
