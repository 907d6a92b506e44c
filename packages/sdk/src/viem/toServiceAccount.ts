import type { Hex, WalletInfo } from '@countersign/protocol'
import {
  type LocalAccount,
  type NonceManager,
  parseSignature,
  type SerializeTransactionFn,
  type SignedAuthorization,
  serializeTransaction,
  type TransactionSerializable,
} from 'viem'
import { toAccount } from 'viem/accounts'
import { notifySigned, type SignedEvent } from '../client/connection.ts'
import { createError, findForeign, unsupportedTransaction } from '../client/errors.ts'
import type { SignTypedDataRequest } from '../client/parseOffChain.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import { signTransaction, type UnsignedTransaction } from '../client/signTransaction.ts'
import type { SignOffChainResult } from '../client/verifyOffChain.ts'
import { verifyWallet } from '../client/verifyWallet.ts'

export type ToServiceAccountOptions = {
  /**
   * Called after each signature, of a transaction before the broadcast; the slug leads to its proof. It is the only way to the
   * opening of a message or of typed data, since viem answers nothing but the signature.
   */
  onSigned?: ((signed: SignedEvent) => void) | undefined
  /** For transactions that are sent at the same time: viem reads their nonces itself, outside the SDK's queue. */
  nonceManager?: NonceManager | undefined
}

/**
 * A viem account whose key is the service's. It signs EIP-1559 transactions of the client's chain that have a recipient and no access
 * list (`unsupported_transaction` otherwise), messages, typed data, authorizations for that chain, and never a bare hash
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
      const unsigned = parseTransaction(transaction, client.config.chainId)
      assertPlainSerializer(unsigned, serializer as SerializeTransactionFn<TransactionSerializable> | undefined)
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
      throw createError('unsupported_method', 'the wallet does not sign a bare hash: nobody could tell what it is of')
    },
  })

  function toSignature({ signature, attestationSlug: slug, opening }: SignOffChainResult): Hex {
    notifySigned(onSigned, { kind: 'off-chain', slug, opening })
    return signature
  }
}

function parseTransaction(transaction: TransactionSerializable, chainId: number): UnsignedTransaction {
  const { type, accessList, to, nonce, gas, maxFeePerGas, maxPriorityFeePerGas, value = 0n, data = '0x' } = transaction
  if (type !== undefined && type !== 'eip1559') throw unsupportedTransaction(`its type is ${type}, not eip1559`)
  const foreign = findForeign(transaction)
  if (foreign) throw foreign
  if (accessList !== undefined && accessList.length > 0) throw unsupportedTransaction('it has an access list')
  if (to === undefined || to === null) throw unsupportedTransaction('it creates a contract: there is no recipient')
  if (transaction.chainId !== chainId) {
    throw unsupportedTransaction(`its chain is ${transaction.chainId ?? 'not named'}, the client’s is ${chainId}`)
  }
  // A key at hand would sign zeros here. Such a signature is of no use, and would be public.
  if (nonce === undefined || gas === undefined || maxFeePerGas === undefined || maxPriorityFeePerGas === undefined) {
    throw createError('invalid_request', 'the transaction is not complete: prepare it before it is signed', {
      details: 'nonce, gas, maxFeePerGas and maxPriorityFeePerGas are needed',
    })
  }
  return { chainId, nonce, to, value, data, gas, maxFeePerGas, maxPriorityFeePerGas }
}

/** Chains with a serialiser of their own mostly write EIP-1559 like everybody else; only then can it be signed. */
function assertPlainSerializer(
  unsigned: UnsignedTransaction,
  serializer: SerializeTransactionFn<TransactionSerializable> | undefined,
): void {
  if (serializer === undefined || serializer === serializeTransaction) return
  const transaction = { ...unsigned, type: 'eip1559' } as const
  if (serializer(transaction) !== serializeTransaction(transaction)) {
    throw unsupportedTransaction('the chain serialises it in a way of its own')
  }
}
