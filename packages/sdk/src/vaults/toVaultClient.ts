import type { Approval, Policy } from '@countersign/policy'
import type { SignRequest, SignResult, VaultInfo, WalletInfo } from '@countersign/protocol'
import type { ServiceApi } from '../client/api.ts'
import type { Connection } from '../client/connection.ts'
import {
  type OffChain,
  parseMessage,
  parseTypedData,
  type SignMessageRequest,
  type SignTypedDataRequest,
} from '../client/parseOffChain.ts'
import { ServiceClient } from '../client/ServiceClient.ts'
import { createVaultError } from './errors.ts'
import { approvalsMissing, checkRequest } from './prepared.ts'
import type { Vault } from './vault.ts'
import { findVaultInfo } from './vaultCalls.ts'

/**
 * A client whose wallet is a vault: for `signAndSend`, and for the adapters of viem, EIP-1193, wagmi and TanStack Query. It signs what
 * the vault's rules allow without approvals, and rejects the rest with `approvals_missing` or `policy_refused` before anything is sent:
 * that is for `prepare`, `approve` and `sendPrepared`.
 *
 * @example
 * const connector = serviceConnector({ client: toVaultClient(client, vault) })
 */
export function toVaultClient(client: ServiceClient, vault: Vault): ServiceClient {
  return new VaultClient(client, vault)
}

/** The same with approvals, of one transaction. */
export class VaultClient extends ServiceClient {
  declare readonly config: Connection['config']
  declare readonly api: ServiceApi
  readonly #policy: Policy

  constructor(client: ServiceClient, vault: Pick<Vault, 'address' | 'policy'>, approvals: readonly Approval[] = []) {
    super(client.config)
    const { address: wallet, policy } = vault
    this.#policy = policy
    this.config = Object.freeze({ ...client.config, wallet })
    // Asked each time: another user may be signed in now, who has no such vault.
    const getWallet = async () => {
      const found = await findVaultInfo(client, wallet)
      if (found) return toWalletInfo(found)
      throw createVaultError('vault_not_found', 'the user has no such vault', { details: wallet })
    }
    this.api = {
      ...client.api,
      getWallet,
      provisionWallet: getWallet,

      async signDigest({ digest, txMetadata }) {
        const missing = checkRequest(policy, { kind: 'transaction', content: txMetadata }) - approvals.length
        if (missing > 0) throw approvalsMissing(missing)
        const use = approvals.length === 0 ? { wallet } : { wallet, approvals }
        return client.api.signDigest({ digest, txMetadata, ...use })
      },
    }
  }

  /** The rules of a vault always ask for an approval of a message. */
  override async signMessage(request: SignMessageRequest): Promise<never> {
    return this.#refuse(parseMessage(request))
  }

  override async signTypedData(request: SignTypedDataRequest): Promise<never> {
    return this.#refuse(parseTypedData(request, this.config.chainId))
  }

  override async signAuthorization(): Promise<never> {
    throw createVaultError('policy_refused', 'the rules of the vault do not allow this', {
      details: 'A vault delegates to no code.',
    })
  }

  #refuse({ digest: _, ...asked }: OffChain): never {
    throw approvalsMissing(checkRequest(this.#policy, asked))
  }
}

/** A vault has no provenance: its key follows from its rules. */
function toWalletInfo({ address, createdAt }: VaultInfo): WalletInfo {
  return { address, createdAt, provenance: { entropyHash: '', entropySig: '', satelliteSource: '' } }
}

/** A `SignRequest`, and the vault that is to sign it. */
export type VaultSignRequest = SignRequest & { wallet: Vault }

/**
 * `client.signAndSend` by a vault, for what its rules allow without approvals. Rejects with `approvals_missing` or `policy_refused` before
 * anything is signed.
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
