import type { OwnerIdentity } from '@countersign/protocol/core'

/** The interfaces to the outside, created in `main.ts` and injected. */
export type Clock = { now(): number }

/** Cryptographically strong random bytes. */
export type Random = (length: number) => Uint8Array<ArrayBuffer>

/** The subject of a verified ID token. Keys belong to issuer and subject. The e-mail address is only shown, with the address of a key. */
export type Identity = OwnerIdentity

/** Verifies an ID token bound to a login secret, once. Throws `time_unknown` before the time is known. */
export type IdTokenVerifier = {
  /** `issuedAt` is the token's time of issue in milliseconds, not later than now. */
  verify(parameters: {
    idToken: string
    loginSecret: Uint8Array
    clientKey?: string | undefined
  }): Promise<Identity & { issuedAt: number }>
}
