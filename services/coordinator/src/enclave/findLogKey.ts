import type { EnclaveTerms } from '../ports.ts'

/** The verifier key of a log, as an enclave attested it. Undefined for an origin that its settings do not have. */
export function findLogKey({ logs }: EnclaveTerms, origin: string): string | undefined {
  // To read a key takes a millisecond, and each was read when it came: a name has no plus sign.
  return logs?.keys.find((vkey) => vkey.startsWith(`${origin}+`))
}
