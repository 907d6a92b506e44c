import type { Approval } from '@countersign/policy'
import type { SignRequest, SignResult, VaultInfo, WalletInfo } from '@countersign/protocol'
import type { ServiceApi } from '../client/api.ts'
import type { Connection } from '../client/connection.ts'
import {
  parseMessage,
  parseTypedData,
  type SignMessageRequest,
  type SignTypedDataRequest,
} from '../client/parseOffChain.ts'
import { ServiceClient } from '../client/ServiceClient.ts'
import type { SignOffChainOptions } from '../client/signOffChain.ts'
import type { SignOffChainResult } from '../client/verifyOffChain.ts'
import { verifyWallet } from '../client/verifyWallet.ts'
import { createVaultError } from './errors.ts'
import { approvalsMissing, checkRequest, policyRefused, withoutDigest } from './prepared.ts'
import { signContent } from './signContent.ts'
import type { Vault } from './vault.ts'
import { findVaultInfo } from './vaultCalls.ts'

/**
 * A client whose wallet is a vault, for `signAndSend` and the adapters of viem, EIP-1193, wagmi and TanStack Query. It signs what the rules
 * allow without approvals. It rejects the rest with `approvals_missing` or `policy_refused` before anything is sent. For requests that need
 * approvals, use `prepare`, `approve` and `sendPrepared`.
 *
 * @example
 * const connector = serviceConnector({ client: toVaultClient(client, vault) })
 */
export function toVaultClient(client: ServiceClient, vault: Vault): ServiceClient {
  return new VaultClient(client, vault)
}

/** With the approvals of one transaction. */
export class VaultClient extends ServiceClient {
  declare readonly config: Connection['config']
  declare readonly api: ServiceApi
  readonly #vault: Pick<Vault, 'address' | 'policy'>

  constructor(client: ServiceClient, vault: Pick<Vault, 'address' | 'policy'>, approvals: readonly Approval[] = []) {
    super(client.config)
    const { address: wallet } = vault
    this.#vault = vault
    this.config = Object.freeze({ ...client.config, wallet })
    // Read each time, because another user may have signed in.
    const getWallet = async () => {
      const info = await findVaultInfo(client, wallet)
      if (info) return toWalletInfo(info)
      throw createVaultError('vault_not_found', 'the user has no such vault', { details: wallet })
    }
    this.api = {
      ...client.api,
      getWallet,
      provisionWallet: getWallet,

      async signDigest({ digest, txMetadata }) {
        const { rule, approvals: required } = checkRequest(vault, { kind: 'transaction', content: txMetadata })
        const missing = required - approvals.length
        if (missing > 0) throw approvalsMissing(missing)
        const use = approvals.length === 0 ? { wallet, rule } : { wallet, rule, approvals }
        return client.api.signDigest({ digest, txMetadata, ...use })
      },
    }
  }

  /** The rules of a vault always require an approval for a message. */
  override async signMessage(request: SignMessageRequest): Promise<never> {
    throw approvalsMissing(checkRequest(this.#vault, withoutDigest(parseMessage(request))).approvals)
  }

  /** Rules of kind `spend` may allow a payment without approvals. */
  override async signTypedData(
    request: SignTypedDataRequest,
    options?: SignOffChainOptions,
  ): Promise<SignOffChainResult> {
    const sent = parseTypedData(request, this.config.chainId)
    const { rule, approvals } = checkRequest(this.#vault, withoutDigest(sent))
    if (approvals > 0) throw approvalsMissing(approvals)
    const { address } = await verifyWallet(this, options?.wallet)
    options?.assertWanted?.()
    return signContent(this, { ...sent, address, rule })
  }

  override async signAuthorization(): Promise<never> {
    throw policyRefused('A vault delegates to no code.')
  }
}

/** A vault has no provenance, because its key derives from its rules. */
function toWalletInfo({ address, createdAt }: VaultInfo): WalletInfo {
  return { address, createdAt, provenance: { entropyHash: '', entropySig: '', satelliteSource: '' } }
}

/** A `SignRequest`, and the vault that signs it. */
export type VaultSignRequest = SignRequest & { wallet: Vault }

/**
 * Signs and broadcasts a transaction with a vault, if its rules allow it without approvals. Otherwise rejects with `approvals_missing` or
 * `policy_refused` before anything is signed.
 *
 * @example
 * const { txHash, attestationSlug } = await signAndSend(client, { to: '0x…', value: '0.01', wallet: vault })
 */
export async function signAndSend(
  client: ServiceClient,
  { wallet, ...request }: VaultSignRequest,
): Promise<SignResult> {
  return toVaultClient(client, wallet).signAndSend(request)
}
