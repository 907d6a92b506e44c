import type { Passkey as PasskeyApprover } from '@countersign/policy'
import { toHex } from '@countersign/protocol'
import { createError } from '../client/errors.ts'
import { createVaultError } from './errors.ts'

export type CreatePasskeyParameters = {
  /** The name in the user's list of passkeys, such as an e-mail address. */
  name: string
  /** Defaults to `name`. */
  displayName?: string | undefined
  /**
   * The passkey's domain: this page's host (the default) or a parent domain. If you lose the domain, the passkey can't approve any
   * more.
   */
  rpId?: string | undefined
  /** The site's name in some browsers. Defaults to `rpId`. */
  rpName?: string | undefined
  /** The origins of pages that may approve. Defaults to this page's origin. */
  origins?: readonly string[] | undefined
  /** Ids of existing passkeys. Their authenticators don't create another one. */
  excludeCredentialIds?: readonly string[] | undefined
  signal?: AbortSignal | undefined
}

/** The data that the app must store to use the passkey again. The policy does not contain it. */
export type PasskeyCredential = {
  /** base64url. */
  credentialId: string
  /** Such as `internal` or `hybrid`. */
  transports: readonly string[]
}

export type Passkey = PasskeyCredential & {
  /** For `approvers` of a policy. */
  approver: PasskeyApprover
}

/** COSE: ECDSA with SHA-256, on P-256. */
const ES256 = -7
/** RFC 5480: SubjectPublicKeyInfo of P-256, before the point. */
const SPKI_PREFIX = '3059301306072a8648ce3d020106082a8648ce3d030107034200'

/**
 * Creates a passkey that can approve: discoverable, ES256, with user verification. Call it in a click handler.
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
        // Not checked, because there is no attestation.
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
    approver: { type: 'passkey', publicKey, rpId, origins: [...origins] },
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
    throw createVaultError('passkey_unsuitable', 'the authenticator did not create an ES256 key')
  }
  return point
}

export function toDescriptor({
  credentialId,
  transports,
}: Pick<PasskeyCredential, 'credentialId'> & Partial<PasskeyCredential>): PublicKeyCredentialDescriptor {
  const transportsOption = transports && { transports: [...transports] as AuthenticatorTransport[] }
  return { type: 'public-key', id: fromBase64Url(credentialId), ...transportsOption }
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
    return Uint8Array.from(binary, (character) => character.charCodeAt(0))
  } catch (cause) {
    throw createError('invalid_request', 'a credential id is not base64url', { cause })
  }
}

export const PASSKEY_TIMEOUT_MS = 5 * 60_000

/** The page's origin. Throws `passkey_unsupported` if there is none. */
export function getOrigin(): string {
  const origin = globalThis.location?.origin
  if (!origin || origin === 'null') throw unsupported('the page has no origin')
  return origin
}

/** Runs a WebAuthn ceremony. Rejects only with a `ServiceError`. */
export async function runCeremony(
  ceremony: (credentials: CredentialsContainer) => Promise<Credential | null>,
): Promise<PublicKeyCredential> {
  // Missing outside a secure context.
  const credentials = globalThis.PublicKeyCredential && globalThis.navigator?.credentials
  if (!credentials) throw unsupported('no WebAuthn, or the page is not secure')
  let credential: Credential | null
  try {
    credential = await ceremony(credentials)
  } catch (cause) {
    throw toPasskeyError(cause)
  }
  if (credential === null) throw createVaultError('passkey_failed', 'the browser returned no passkey')
  return credential as PublicKeyCredential
}

/** The exceptions of WebAuthn §5.1.3 and §5.1.4. A refusal and a timeout are the same by design. */
function toPasskeyError(cause: unknown) {
  const name = cause instanceof Error ? cause.name : ''
  if (name === 'NotAllowedError' || name === 'AbortError') {
    return createVaultError('passkey_cancelled', 'the passkey was not used', { cause })
  }
  if (name === 'InvalidStateError') {
    return createVaultError('passkey_exists', 'the authenticator already holds one of these passkeys', { cause })
  }
  if (name === 'NotSupportedError' || name === 'ConstraintError') {
    return createVaultError('passkey_unsuitable', 'the authenticator cannot create such a key', { cause })
  }
  return createVaultError('passkey_failed', 'the browser failed', { details: name || undefined, cause })
}

function unsupported(details: string) {
  return createVaultError('passkey_unsupported', 'passkeys are not available', { details })
}
