import { createVaultError } from './errors.ts'

/** Longer than anybody looks for a phone. */
export const PASSKEY_TIMEOUT_MS = 5 * 60_000

/** Of the page. Throws `passkey_unsupported` where there is none. */
export function getOrigin(): string {
  const origin = globalThis.location?.origin
  if (!origin || origin === 'null') throw unsupported('this is no page that could have a passkey')
  return origin
}

/** Runs a ceremony of WebAuthn; every failure is a `ServiceError`. */
export async function runCeremony(
  ceremony: (credentials: CredentialsContainer) => Promise<Credential | null>,
): Promise<PublicKeyCredential> {
  // A page that is not secure has neither.
  const credentials = globalThis.PublicKeyCredential && globalThis.navigator?.credentials
  if (!credentials) throw unsupported('no WebAuthn, or the page is not secure')
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

function unsupported(details: string) {
  return createVaultError('passkey_unsupported', 'there are no passkeys here', { details })
}
