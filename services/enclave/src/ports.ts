/** What the enclave needs of the outside, made in `main.ts` and injected. */
export type Clock = { now(): number }

/** Cryptographically strong random bytes. */
export type Random = (length: number) => Uint8Array<ArrayBuffer>

export type LogFields = Record<string, string | number | boolean | undefined>

/** JSON lines; fields are chosen one by one, so that no secret gets in by accident. */
export type Log = {
  info(msg: string, fields?: LogFields): void
  warn(msg: string, fields?: LogFields): void
  error(msg: string, fields?: LogFields): void
}

/** Who a verified ID token is about. Identity is issuer and subject, never an e-mail address. */
export type Identity = { issuer: string; subject: string }

/** Verifies an ID token bound to a login secret, once. */
export type IdTokenVerifier = {
  verify(parameters: { idToken: string; loginSecret: Uint8Array }): Promise<Identity>
}
