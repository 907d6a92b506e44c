import type { Collateral } from '@countersign/attestation'
import type {
  EnclaveConfig,
  OpenSessionRequest,
  OpenSessionResponse,
  SignItem,
  SignTransactionsResponse,
} from '@countersign/protocol'
import type { SelfAttestation, Witness } from '@countersign/receipt'

/** What the coordinator needs of the outside; made in `main.ts`, injected everywhere. */
export type Clock = { now(): number }

/** Cryptographically strong random bytes. */
export type Random = (length: number) => Uint8Array<ArrayBuffer>

/** One satellite-signed sample for each signature, each used once. Throws `entropy_unavailable`. */
export type Entropy = {
  take(count: number): Promise<Witness[]>
  stop(): Promise<void>
}

/** A source of samples, as it answers; whoever asks checks them. */
export type EntropySource = {
  /** Its name in witnesses. */
  readonly name: string
  /** Whether its samples carry a signature that can be checked. */
  readonly isSigned: boolean
  /** 1 to 256 samples. */
  getSamples(count: number): Promise<Witness[]>
}

/** The key enclave, attested. Throws `enclave_unavailable`. */
export type KeyEnclave = {
  openSession(request: OpenSessionRequest): Promise<OpenSessionResponse>
  /** The configuration is that of the enclave that signed, as it attested it. */
  signTransactions(items: readonly SignItem[]): Promise<SignTransactionsResponse & { config: EnclaveConfig }>
  stop(): Promise<void>
}

/** The coordinator's attestation of its own key, refreshed in the background. */
export type SelfReport = {
  readonly mode: 'hardware' | 'mock'
  /** 32 bytes, hex: the attested Ed25519 key. */
  readonly publicKey: string
  /** The one in force; throws while there is none. */
  current(): { selfAttestation: SelfAttestation; expiresAt: string }
  /** Ed25519 by the attested key. */
  sign(message: Uint8Array): Uint8Array
  stop(): Promise<void>
}

/** The collateral in force for a platform, checked and in date. Throws `collateral_stale`. */
export type CollateralStore = {
  /** With its canonical bytes and their hash, for the platform that a quote names. */
  current(platform: {
    fmspc: string
    ca: 'platform' | 'processor'
  }): Promise<{ collateral: Collateral; bytes: Uint8Array<ArrayBuffer>; hash: string }>
  stop(): Promise<void>
}

/** An identity provider, by its id. */
export type IdentityProvider = {
  /** Where to send the browser. */
  start(parameters: { state: string; nonce: string; codeVerifier: string }): Promise<URL>
  /** Exchanges the code of a callback; answers the raw ID token and what it says. Throws `oauth_exchange_failed`. */
  finish(parameters: {
    callbackUrl: URL
    state: string
    nonce: string
    codeVerifier: string
  }): Promise<{ idToken: string; issuer: string; subject: string; email: string; name: string | null }>
}
