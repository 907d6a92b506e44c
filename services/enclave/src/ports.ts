/** The interfaces to the outside, created in `main.ts` and injected. */
export type Clock = { now(): number }

/** Cryptographically strong random bytes. */
export type Random = (length: number) => Uint8Array<ArrayBuffer>

/** The subject of a verified ID token. Identity is issuer and subject, never an e-mail address. */
export type Identity = { issuer: string; subject: string }

/** Verifies an ID token bound to a login secret, once. Throws `time_unknown` before the time is known. */
export type IdTokenVerifier = {
  /** `issuedAt` is the token's time of issue in milliseconds, not later than now. */
  verify(parameters: { idToken: string; loginSecret: Uint8Array }): Promise<Identity & { issuedAt: number }>
}
