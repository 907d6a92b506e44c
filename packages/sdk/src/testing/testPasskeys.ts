import { toBase64Url } from './testReceipt.ts'

export type TestPasskeysOptions = {
  /** The page's origin if there is no browser. Defaults to `http://localhost`. */
  origin?: string | undefined
}

export type TestPasskeys = {
  /** Replaces the browser's authenticator. The returned function restores it. */
  install(): () => void
  /** Makes the next request for a passkey fail, as if the user closed the dialog. */
  cancelNext(): void
  /** The ids of its passkeys, oldest first. */
  readonly credentialIds: readonly string[]
}

type StoredPasskey = { id: string; rawId: Uint8Array<ArrayBuffer>; rpId: string; keys: CryptoKeyPair }

/** User present and verified, backed up. */
const FLAGS = 0x01 | 0x04 | 0x08 | 0x10

/**
 * An authenticator in memory, for tests without a browser or its dialogs. It creates ES256 passkeys, and approves with the requested
 * passkey or the newest one.
 *
 * @example
 * const uninstall = createTestPasskeys().install()
 * const { approver } = await createPasskey({ name: 'ada@example.com' })
 */
export function createTestPasskeys({ origin: given = 'http://localhost' }: TestPasskeysOptions = {}): TestPasskeys {
  const passkeys: StoredPasskey[] = []
  let isCancelled = false

  /** WebAuthn §5.1.3 and §5.1.4: the browser's checks before the dialog. */
  function checkPage(rpId: string | undefined): { origin: string; rpId: string } {
    const { origin } = globalThis.location
    const host = new URL(origin).hostname
    const domain = rpId ?? host
    if (host !== domain && !host.endsWith(`.${domain}`)) throw new DOMException('another domain', 'SecurityError')
    if (isCancelled) {
      isCancelled = false
      throw new DOMException('the user closed the dialog', 'NotAllowedError')
    }
    return { origin, rpId: domain }
  }

  const find = (rpId: string, listed: readonly PublicKeyCredentialDescriptor[] = []) =>
    passkeys.findLast(
      (passkey) => passkey.rpId === rpId && (listed.length === 0 || listed.some(({ id }) => toId(id) === passkey.id)),
    )

  const credentials: Pick<CredentialsContainer, 'create' | 'get'> = {
    async create({ publicKey: options } = {}) {
      const { rpId } = checkPage(options?.rp.id)
      const excluded = options?.excludeCredentials ?? []
      if (excluded.length > 0 && find(rpId, excluded)) throw new DOMException('it is here', 'InvalidStateError')
      const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify'])
      const rawId = crypto.getRandomValues(new Uint8Array(16))
      const passkey = { id: toBase64Url(rawId), rawId, rpId, keys }
      passkeys.push(passkey)
      const spki = await crypto.subtle.exportKey('spki', keys.publicKey)
      return toCredential(passkey, {
        getPublicKey: () => spki,
        getPublicKeyAlgorithm: () => -7,
        getTransports: () => ['internal'],
      })
    },

    async get({ publicKey: options } = {}) {
      const { origin, rpId } = checkPage(options?.rpId)
      const passkey = find(rpId, options?.allowCredentials)
      if (options === undefined || passkey === undefined) throw new DOMException('no passkey', 'NotAllowedError')
      const challenge = toBase64Url(toBytes(options.challenge))
      const clientData = { type: 'webauthn.get', challenge, origin, crossOrigin: false }
      const clientDataJSON = new TextEncoder().encode(JSON.stringify(clientData))
      const authenticatorData = join([await hash(new TextEncoder().encode(rpId)), Uint8Array.of(FLAGS, 0, 0, 0, 0)])
      const signed = join([authenticatorData, await hash(clientDataJSON)])
      const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, passkey.keys.privateKey, signed)
      return toCredential(passkey, {
        authenticatorData: authenticatorData.buffer,
        clientDataJSON: clientDataJSON.buffer,
        signature: toDer(new Uint8Array(signature)).buffer,
      })
    },
  }

  return {
    install() {
      const restore = [
        define(globalThis.navigator, 'credentials', credentials),
        ...(globalThis.PublicKeyCredential ? [] : [define(globalThis, 'PublicKeyCredential', class {})]),
        ...(globalThis.location ? [] : [define(globalThis, 'location', { origin: given })]),
      ]
      return () => {
        for (const undo of restore) undo()
      }
    },
    cancelNext() {
      isCancelled = true
    },
    get credentialIds() {
      return passkeys.map(({ id }) => id)
    },
  }
}

/** Returns a function that restores the previous value. */
function define(target: object, name: string, value: unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(target, name)
  Object.defineProperty(target, name, { configurable: true, writable: true, value })
  return () => {
    if (before === undefined) Reflect.deleteProperty(target, name)
    else Object.defineProperty(target, name, before)
  }
}

function toCredential({ id, rawId }: StoredPasskey, response: object): Credential {
  return { id, rawId: rawId.buffer, type: 'public-key', response } as Credential
}

function toId(id: BufferSource): string {
  return toBase64Url(toBytes(id))
}

function toBytes(source: BufferSource): Uint8Array<ArrayBuffer> {
  if (source instanceof ArrayBuffer) return new Uint8Array(source)
  return Uint8Array.from(new Uint8Array(source.buffer, source.byteOffset, source.byteLength))
}

async function hash(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
}

function join(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(parts.flatMap((part) => [...part]))
}

/** WebCrypto gives r ‖ s, authenticators give DER. */
function toDer(signature: Uint8Array): Uint8Array<ArrayBuffer> {
  const integers = [signature.subarray(0, 32), signature.subarray(32)].map((part) => {
    const start = part.findIndex((byte) => byte !== 0)
    const digits = part.subarray(start)
    const padded = (digits[0] ?? 0) >= 0x80 ? [0, ...digits] : [...digits]
    return Uint8Array.of(0x02, padded.length, ...padded)
  })
  const body = join(integers)
  return Uint8Array.of(0x30, body.length, ...body)
}
