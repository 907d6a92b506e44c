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

/** The configuration that an enclave has attested. */
export type EnclaveTerms = {
  config: EnclaveConfig
  settings: EnclaveSettings
  /** Present if the settings have a log: the origins that this enclave may write to, and the verifier keys of all origins. */
  logs?: { own: readonly string[]; keys: readonly string[] } | undefined
}

/** The attested key enclave. Throws `enclave_unavailable`. */
export type KeyEnclave = {
  /** Also throws `oauth_exchange_failed` and `provider_unavailable`. */
  openSession(request: OpenSessionRequest): Promise<OpenSessionResponse>
  /** The attested terms of an enclave in use. */
  getTerms(): Promise<EnclaveTerms>
  /** Also throws `invalid_policy`, `grant_invalid` and `session_expired`. */
  deriveVault(request: VaultRequest): Promise<VaultResponse>
  /**
   * Configuration and settings are those that the signing enclave has attested. `policies` holds the texts of the policies that items name,
   * in case the enclave doesn't know them. With `bootId`, only that boot may sign; throws `budget_unavailable` if it has ended.
   */
  signItems(
    items: readonly SignItem[],
    policies?: readonly string[],
    bootId?: string,
  ): Promise<(SignItemsResponse | LoggedItemsResponse) & EnclaveTerms>
  /** How many calls of `signItems` may be in flight. */
  countSlots(): number
  /** Prefers other enclaves to this boot for a while, because its quotes failed. */
  avoid(bootId: string): void
  /** Calls the enclave whose boot the request names. Throws `log_unavailable` if that boot has ended or can't be reached. */
  release(request: ReleaseRequest): Promise<ReleaseResponse>
  /** One per address: each enclave has its own log. */
  readonly logs: readonly EnclaveLog[]
  /** Reports for each address whether the enclave has attested itself and answers now. Never throws. */
  check(): Promise<readonly { address: string; isUp: boolean }[]>
  stop(): Promise<void>
}

/** The log of the enclave at one address. */
export type EnclaveLog = {
  /** For log messages. */
  readonly address: string
  getTerms(): Promise<EnclaveTerms>
  call(request: LogRequest): Promise<LogResponse>
}

export type EnclavePolicy = Omit<QuotePolicy, 'reportData'> & {
  /** Accepted configurations. Unset in mock mode only. */
  configHashes?: readonly string[]
  /** Accepted root secrets, by commitment. Unset: any, as long as all enclaves have the same. */
  commitments?: readonly string[]
}
