import type { QuotePolicy } from '@countersign/attestation'
import type {
  EnclaveConfig,
  EnclaveSettings,
  LoggedItemsResponse,
  LogRequest,
  LogResponse,
  OpenSessionRequest,
  OpenSessionResponse,
  ReleaseRequest,
  ReleaseResponse,
  SignItem,
  SignItemsResponse,
  VaultRequest,
  VaultResponse,
} from '@countersign/protocol'

/** What an enclave has attested about how it works. */
export type EnclaveTerms = {
  config: EnclaveConfig
  settings: EnclaveSettings
  /** Where the settings have a log: the origins that this enclave may write to, and the verifier keys of all of them. */
  logs?: { own: readonly string[]; keys: readonly string[] } | undefined
}

/** The key enclave, attested. Throws `enclave_unavailable`. */
export type KeyEnclave = {
  /** Throws `oauth_exchange_failed` and `provider_unavailable` too. */
  openSession(request: OpenSessionRequest): Promise<OpenSessionResponse>
  /** What an enclave in use has attested. */
  getTerms(): Promise<EnclaveTerms>
  /** Throws `invalid_policy`, `grant_invalid` and `session_expired` too. */
  deriveVault(request: VaultRequest): Promise<VaultResponse>
  /**
   * Configuration and settings are those of the enclave that signed, as it attested them. `policies` are texts of those that items
   * name: an enclave may not know them.
   */
  signItems(
    items: readonly SignItem[],
    policies?: readonly string[],
  ): Promise<(SignItemsResponse | LoggedItemsResponse) & EnclaveTerms>
  /** How many calls of `signItems` may be under way. */
  countSlots(): number
  /** Prefers other enclaves to this boot for a while: its quotes failed. */
  avoid(bootId: string): void
  /** At the enclave whose boot it names. Throws `log_unavailable` where that boot is over or cannot be reached. */
  release(request: ReleaseRequest): Promise<ReleaseResponse>
  /** One for each address: a log is an enclave's own. */
  readonly logs: readonly EnclaveLog[]
  /** Whether the enclave at each address has attested itself, and answers at this moment. Never throws. */
  check(): Promise<readonly { address: string; isUp: boolean }[]>
  stop(): Promise<void>
}

/** The log of the enclave at one address. */
export type EnclaveLog = {
  /** For our log. */
  readonly address: string
  getTerms(): Promise<EnclaveTerms>
  call(request: LogRequest): Promise<LogResponse>
}

export type EnclavePolicy = Omit<QuotePolicy, 'reportData'> & {
  /** Configurations to accept. Left out in mock mode only. */
  configHashes?: readonly string[]
  /** Root secrets to accept, each by its commitment. Left out: any, as long as all enclaves have the same. */
  commitments?: readonly string[]
}
