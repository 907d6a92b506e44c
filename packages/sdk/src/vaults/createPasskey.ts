import type { Approver } from '@countersign/policy'
import { toHex } from '@countersign/protocol'
import { createError } from '../client/errors.ts'
import { createVaultError } from './errors.ts'

export type CreatePasskeyParameters = {
  /** What the user's passkeys list shows, such as an email address. */
  name: string
  /** The same, for people; the name if it is not given. */
  displayName?: string | undefined
  /**
   * The domain that the passkey belongs to: this page's host if it is not given, or a domain above it. A passkey of a domain that is
   * lost can approve nothing any more.
   */
  rpId?: string | undefined
  /** What some browsers show of the site; `rpId` if it is not given. */
  rpName?: string | undefined
  /** Where approving pages may be: this page's origin if it is not given. */
  origins?: readonly string[] | undefined
  /** Ids of passkeys that exist already: their authenticators make no second one. */
  excludeCredentialIds?: readonly string[] | undefined
  signal?: AbortSignal | undefined
}

/** How to ask for a passkey again. The policy has none of it: the app keeps it. */
export type PasskeyCredential = {
  /** base64url. */
  credentialId: string
  /** How the authenticator is reached, such as `internal` or `hybrid`. */
  transports: readonly string[]
}

export type Passkey = PasskeyCredential & {
  /** For `approvers` of a policy. */
  approver: Approver
}

/** COSE: ECDSA with SHA-256, on P-256. */
const ES256 = -7
/** RFC 5480: SubjectPublicKeyInfo of a point of P-256; the point follows. */
const SPKI_PREFIX = '3059301306072a8648ce3d020106082a8648ce3d030107034200'

/**
 * Makes a passkey that can approve: discoverable, of ES256, with user verification. Call it in the handler of a click.
 *
 * @example
 * const { approver, credentialId, transports } = await createPasskey({ name: 'ada@example.com' })
 */
export async function createPasskey(parameters: CreatePasskeyParameters): Promise<Passkey> {
  const { name, displayName = name, excludeCredentialIds = [], signal } = parameters
  const { origin, hostname } = new URL(getOrigin())
  const { rpId = hostname, origins = [origin] } = parameters
  const excludeCredentials = excludeCredentialIds.map((credentialId) => toDescriptor({ credentialId }))
  const credential = await runCeremony((credentials) =>
    credentials.create({
      publicKey: {
        rp: { id: rpId, name: parameters.rpName ?? rpId },
        user: { id: crypto.getRandomValues(new Uint8Array(32)), name, displayName },
        // Nobody checks it: there is no attestation, and the key counts only by what it signs later.
        challenge: crypto.getRandomValues(new Uint8Array(32)),
        pubKeyCredParams: [{ type: 'public-key', alg: ES256 }],
        authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
        attestation: 'none',
        excludeCredentials,
        timeout: PASSKEY_TIMEOUT_MS,
      },
      ...(signal && { signal }),
    }),
  )
  const response = credential.response as AuthenticatorAttestationResponse
  const publicKey = readPoint(response)
  return {
    approver: { publicKey, rpId, origins: [...origins] },
    credentialId: credential.id,
    transports: response.getTransports?.() ?? [],
  }
}

function readPoint(response: AuthenticatorAttestationResponse): string {
  const key = response.getPublicKeyAlgorithm?.() === ES256 ? response.getPublicKey() : null
  const spki = key === null ? '' : toHex(new Uint8Array(key))
  const point = spki.slice(SPKI_PREFIX.length)
  // Uncompressed, and nothing after it.
  if (!spki.startsWith(SPKI_PREFIX) || !/^04[0-9a-f]{128}$/.test(point)) {
    throw createVaultError('passkey_unsuitable', 'the authenticator made a key of another kind than ES256')
  }
  return point
}

/** How WebAuthn names a passkey that the app has kept. */
export function toDescriptor({
  credentialId,
  transports,
}: Pick<PasskeyCredential, 'credentialId'> & Partial<PasskeyCredential>): PublicKeyCredentialDescriptor {
  const known = transports && { transports: [...transports] as AuthenticatorTransport[] }
  return { type: 'public-key', id: fromBase64Url(credentialId), ...known }
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
    return Uint8Array.from(binary, (character) => character.charCodeAt(0))
  } catch (cause) {
    throw createError('invalid_request', 'a credential id is not base64url', { cause })
  }
}

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
