import { type OwnerIdentity, toHex } from '@countersign/protocol'
import { createError } from '../client/errors.ts'

/** A P-256 key of one sign-in. The browser creates it; on Node and React Native, the app supplies it. */
export type ClientKey = {
  /** 65 bytes, uncompressed, in lower-case hex. */
  publicKey: string
  /** ECDSA with SHA-256: r ‖ s, 64 bytes. */
  sign(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array>
}

/** A direct sign-in that has left the page. */
export type PendingLogin = {
  issuer: string
  state: string
  loginSecret: string
  nonce: string
  codeVerifier: string
  returnTo: string
}

export type StoredKey = {
  publicKey: string
  /** The browser uses it without showing it to any page. */
  privateKey: CryptoKey
  /** Deleted some time after. */
  untilMs: number
  /** Whether it is the key of a session. */
  isUsed?: boolean
  pending?: PendingLogin
  /** The session of a direct sign-in, and the user whom its ID token names. */
  session?: { secret: string; identity: OwnerIdentity }
}

/** The key of an open session, and the end of the session. */
export type SessionKey = { clientKey: string; expiresMs: number }

/** How long a sign-in may take. */
const LOGIN_MS = 10 * 60_000
/** The longest session of an enclave. */
const MAX_SESSION_MS = 12 * 60 * 60_000
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' }
const STORE = 'keys'

export type KeyStore = ReturnType<typeof openKeyStore>

/** The keys of one service in this browser. All functions throw `client_key_unavailable` if the browser has no IndexedDB. */
export function openKeyStore(apiBaseUrl: string) {
  /** Reads and changes all keys in one transaction. Another tab may sign out at any time, and what it deletes must not return. */
  const change = (act: (keys: IDBObjectStore, all: StoredKey[]) => void) =>
    run(apiBaseUrl, 'readwrite', (keys) => {
      const reading: IDBRequest<StoredKey[]> = keys.getAll()
      reading.onsuccess = () => {
        try {
          act(keys, reading.result.filter(isCurrent))
        } catch {
          // This browser cannot store a `CryptoKey`.
          keys.transaction.abort()
        }
      }
    })

  /** All keys that have not expired. */
  async function list(): Promise<StoredKey[]> {
    let reading: IDBRequest<StoredKey[]> | undefined
    await run(apiBaseUrl, 'readonly', (keys) => {
      reading = keys.getAll()
    })
    return (reading?.result ?? []).filter(isCurrent)
  }

  return {
    list,

    /** Stores a new key, with what `describe` returns, and deletes those that have expired. */
    async create(describe?: (publicKey: string) => PendingLogin): Promise<StoredKey> {
      try {
        const { publicKey: point, privateKey } = await crypto.subtle.generateKey(ALGORITHM, false, ['sign', 'verify'])
        const publicKey = toHex(new Uint8Array(await crypto.subtle.exportKey('raw', point)))
        const pending = describe?.(publicKey)
        const key = { publicKey, privateKey, untilMs: Date.now() + LOGIN_MS, ...(pending && { pending }) }
        await change((keys, current) => {
          keys.clear()
          for (const one of [...current, key]) keys.put(one)
        })
        // Some browsers accept a key in a private window and lose it.
        const stored = (await list()).find((one) => one.publicKey === publicKey)
        await sign(stored as StoredKey, new Uint8Array(1))
        return stored as StoredKey
      } catch (cause) {
        throw unavailable(cause)
      }
    },

    /** The key of an open session. It stays until the session expires. */
    async find({ clientKey, expiresMs }: SessionKey): Promise<ClientKey | undefined> {
      const untilMs = Math.min(expiresMs, Date.now() + MAX_SESSION_MS)
      let key: StoredKey | undefined
      await change((keys, current) => {
        key = current.find((one) => one.publicKey === clientKey)
        if (key === undefined) return
        if (!key.isUsed || key.untilMs !== untilMs) keys.put({ ...key, isUsed: true, untilMs })
        // Of earlier sessions: the service must not choose another user's key.
        for (const one of current) if (one.isUsed && one !== key) keys.delete(one.publicKey)
      })
      return key && { publicKey: clientKey, sign: (bytes) => sign(key as StoredKey, bytes) }
    },

    /** Removes a pending sign-in, so that its answer counts once. */
    async takePending({
      issuer,
      state,
    }: Pick<PendingLogin, 'issuer' | 'state'>): Promise<(StoredKey & { pending: PendingLogin }) | undefined> {
      let key: StoredKey | undefined
      await change((keys, current) => {
        key = current.find(({ pending }) => pending?.state === state && pending.issuer === issuer)
        if (key) keys.delete(key.publicKey)
      })
      return key?.pending && { ...key, pending: key.pending }
    },

    /** Replaces the session of this browser. */
    async replaceSession({ publicKey, privateKey, untilMs, session }: StoredKey): Promise<void> {
      await change((keys, current) => {
        for (const one of current) if (one.isUsed) keys.delete(one.publicKey)
        keys.put({ publicKey, privateKey, isUsed: true, untilMs, session })
      })
    },

    clear: () => run(apiBaseUrl, 'readwrite', (keys) => keys.clear()),
  }
}

function isCurrent({ untilMs }: StoredKey): boolean {
  return Date.now() < untilMs
}

function unavailable(cause: unknown) {
  return createError('client_key_unavailable', 'this browser cannot store a key', { cause })
}

async function sign({ privateKey }: StoredKey, bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.sign({ ...ALGORITHM, hash: 'SHA-256' }, privateKey, bytes))
}

/** Runs one transaction and waits until it is complete. */
async function run(
  apiBaseUrl: string,
  mode: IDBTransactionMode,
  act: (keys: IDBObjectStore) => unknown,
): Promise<void> {
  try {
    const database = await new Promise<IDBDatabase>((resolve, reject) => {
      const opening = indexedDB.open(`countersign:${apiBaseUrl}`, 1)
      opening.onupgradeneeded = () => opening.result.createObjectStore(STORE, { keyPath: 'publicKey' })
      opening.onsuccess = () => resolve(opening.result)
      opening.onerror = () => reject(opening.error)
    })
    try {
      await new Promise<void>((resolve, reject) => {
        const transaction = database.transaction(STORE, mode)
        transaction.oncomplete = () => resolve()
        transaction.onabort = () => reject(transaction.error)
        act(transaction.objectStore(STORE))
      })
    } finally {
      database.close()
    }
  } catch (cause) {
    throw unavailable(cause)
  }
}
