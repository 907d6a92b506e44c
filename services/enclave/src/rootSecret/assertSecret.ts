export const SECRET_BYTES = 32

/** Refuses bytes that cannot be a root secret. */
export function assertSecret(secret: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (secret.length !== SECRET_BYTES) throw new Error('the root secret does not have 32 bytes')
  if (secret.every((byte) => byte === secret[0])) throw new Error('the root secret is not random')
  return secret
}
