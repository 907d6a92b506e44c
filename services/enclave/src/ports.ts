/** What the enclave needs from outside, made in `main.ts` and injected. */
export type Clock = { now(): number }

/** Cryptographically strong random bytes. */
export type Random = (length: number) => Uint8Array<ArrayBuffer>

/** Who a verified ID token is about. Identity is issuer and subject, never an e-mail address. */
export type Identity = { issuer: string; subject: string }

/** Verifies an ID token bound to a login secret, once. Throws `time_unknown` before the time is known. */
export type IdTokenVerifier = {
  /** `issuedAt` is when the token was issued by its issuer, in milliseconds, and not later than now. */
  verify(parameters: { idToken: string; loginSecret: Uint8Array }): Promise<Identity & { issuedAt: number }>
}
