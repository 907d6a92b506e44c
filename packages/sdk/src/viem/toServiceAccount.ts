import type { Hex, WalletInfo } from '@countersign/protocol'
import { type LocalAccount, type NonceManager, parseSignature, type SignedAuthorization } from 'viem'
import { toAccount } from 'viem/accounts'
import { notifySigned, type SignedEvent } from '../client/connection.ts'
import { createError } from '../client/errors.ts'
import type { SignTypedDataRequest } from '../client/parseOffChain.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import { signTransaction } from '../client/signTransaction.ts'
import type { SignOffChainResult } from '../client/verifyOffChain.ts'
import { verifyWallet } from '../client/verifyWallet.ts'
import { parseTransaction } from './parseTransaction.ts'

export type ToServiceAccountOptions = {
  /**
   * Called after each signature (before the broadcast) with the slug of its proof. The only way to get the opening of a message or typed
   * data, because viem returns only the signature.
   */
  onSigned?: ((signed: SignedEvent) => void) | undefined
  /** For transactions sent at the same time, because viem reads nonces itself, outside the SDK's queue. */
  nonceManager?: NonceManager | undefined
}

/**
 * A viem account that signs through the service. For the client's chain, it signs messages, typed data, authorizations, and EIP-1559
 * transactions with a recipient and without an access list (otherwise `unsupported_transaction`). It never signs a bare hash
 * (`unsupported_method`).
 *
 * @example
 * const account = toServiceAccount(client, wallet, { onSigned: ({ slug }) => showProof(slug) })
 * const walletClient = createWalletClient({ account, chain: sepolia, transport: http() })
 * const hash = await walletClient.sendTransaction({ to: '0x…', value: parseEther('0.01') })
 */
export function toServiceAccount(
  client: ServiceClient,
  wallet: WalletInfo,
  { onSigned, nonceManager }: ToServiceAccountOptions = {},
): LocalAccount {
  return toAccount({
    address: wallet.address,
    nonceManager,
    async signTransaction(transaction, { serializer } = {}) {
      const unsigned = parseTransaction(transaction, { chainId: client.config.chainId, serializer })
      await verifyWallet(client, wallet)
      const signing = { wallet, isNamed: true, transaction: unsigned }
      const { serializedTransaction, signed } = await signTransaction(client, signing)
      const { txHash, attestationSlug: slug } = signed
      notifySigned(onSigned, { kind: 'transaction', txHash, slug })
      return serializedTransaction
    },
    signMessage: async ({ message }) => toSignature(await client.signMessage({ message }, { wallet })),
    signTypedData: async (typedData) =>
      toSignature(await client.signTypedData(typedData as SignTypedDataRequest, { wallet })),
    async signAuthorization({ chainId, nonce, ...code }) {
      const address = code.address ?? code.contractAddress
      const request = { chainId, address, nonce }
      const { signature, attestationSlug: slug } = await client.signAuthorization(request, { wallet })
      notifySigned(onSigned, { kind: 'authorization', slug })
      return { ...request, ...parseSignature(signature) } as SignedAuthorization
    },
    async sign() {
      throw createError('unsupported_method', 'the wallet does not sign a bare hash')
    },
  })

  function toSignature({ signature, attestationSlug: slug, opening }: SignOffChainResult): Hex {
    notifySigned(onSigned, { kind: 'off-chain', slug, opening })
    return signature
  }
}
