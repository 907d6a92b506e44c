import { createVaultError } from './errors.ts'

/** What passkeys use of the page. Tests put another in its place. */
export type PasskeyPage = {
  /** Undefined where the browser has no WebAuthn, or hides it from a page that is not secure. */
  getCredentials(): Pick<CredentialsContainer, 'create' | 'get'> | undefined
  /** Such as `https://vault.example`. */
  getOrigin(): string
  now(): number
}

export const browserPasskeyPage: PasskeyPage = {
  getCredentials: () => (globalThis.PublicKeyCredential === undefined ? undefined : globalThis.navigator?.credentials),
  getOrigin: () => globalThis.location?.origin ?? '',
  now: Date.now,
}

/** Longer than anybody looks for a phone. */
export const PASSKEY_TIMEOUT_MS = 5 * 60_000

/** Runs a ceremony of WebAuthn; every failure is a `ServiceError`. */
export async function runCeremony(
  page: PasskeyPage,
  ceremony: (credentials: Pick<CredentialsContainer, 'create' | 'get'>) => Promise<Credential | null>,
): Promise<PublicKeyCredential> {
  const credentials = page.getCredentials()
  if (credentials === undefined) {
    throw createVaultError('passkey_unsupported', 'this browser has no passkeys', {
      details: 'no WebAuthn, or the page is not secure',
    })
  }
  let credential: Credential | null
  try {
    credential = await ceremony(credentials)
  } catch (cause) {
    throw toPasskeyError(cause)
  }
  if (credential === null) throw createVaultError('passkey_failed', 'the browser gave no passkey')
  return credential as PublicKeyCredential
}

/** WebAuthn §5.1.3 and §5.1.4 say which exception means what. A refusal and a timeout look the same on purpose. */
function toPasskeyError(cause: unknown) {
  const name = cause instanceof Error ? cause.name : ''
  if (name === 'NotAllowedError' || name === 'AbortError') {
    return createVaultError('passkey_cancelled', 'the passkey was not used', { cause })
  }
  if (name === 'InvalidStateError') {
    return createVaultError('passkey_exists', 'the authenticator holds one of these passkeys already', { cause })
  }
  if (name === 'NotSupportedError' || name === 'ConstraintError') {
    return createVaultError('passkey_unsuitable', 'the authenticator makes no such key', { cause })
  }
  return createVaultError('passkey_failed', 'the browser refused', { details: name || undefined, cause })
}
