import { type Hex, ServiceError, type WalletInfo } from '@countersign/protocol'
import {
  type LocalAccount,
  type NonceManager,
  type SerializeTransactionFn,
  serializeTransaction,
  type TransactionSerializable,
} from 'viem'
import { toAccount } from 'viem/accounts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import { signTransaction, type UnsignedTransaction } from '../client/signTransaction.ts'

export type ToServiceAccountOptions = {
  /** Called after each signature and before the broadcast; the slug leads to its proof. */
  onSigned?: ((signed: { txHash: Hex; slug: string }) => void) | undefined
  /** For transactions that are sent at the same time: viem reads their nonces itself, outside the SDK's queue. */
  nonceManager?: NonceManager | undefined
}

/** Everything a transaction of another kind would carry. */
const FOREIGN = [
  'gasPrice',
  'maxFeePerBlobGas',
  'blobs',
  'blobVersionedHashes',
  'sidecars',
  'authorizationList',
] as const

/**
 * A viem account whose transactions are signed by the service. It signs EIP-1559 transactions of the client's chain that have a
 * recipient and no access list (`unsupported_transaction` otherwise), and nothing but transactions (`unsupported_method`).
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
      const { serializedTransaction, txHash, slug } = await signTransaction(client, { wallet, transaction: unsigned })
      // Not called here: what it throws must not undo a signature that is public already.
      if (onSigned) queueMicrotask(() => onSigned({ txHash, slug }))
      return serializedTransaction
    },
    sign: () => refuse('a bare hash'),
    signMessage: () => refuse('messages'),
    signTypedData: () => refuse('typed data'),
    signAuthorization: () => refuse('authorizations (EIP-7702)'),
  })
}

function parseTransaction(transaction: TransactionSerializable, chainId: number): UnsignedTransaction {
  const { type, accessList, to, nonce, gas, maxFeePerGas, maxPriorityFeePerGas, value = 0n, data = '0x' } = transaction
  if (type !== undefined && type !== 'eip1559') throw unsupported(`its type is ${type}, not eip1559`)
  const foreign = FOREIGN.find((name) => (transaction as Record<string, unknown>)[name] !== undefined)
  if (foreign !== undefined) throw unsupported(`${foreign} belongs to another type of transaction than EIP-1559`)
  if (accessList !== undefined && accessList.length > 0) throw unsupported('it has an access list')
  if (to === undefined || to === null) throw unsupported('it creates a contract: there is no recipient')
  if (transaction.chainId !== chainId) {
    throw unsupported(`its chain is ${transaction.chainId ?? 'not named'}, the client’s is ${chainId}`)
  }
  // A key at hand would sign zeros here. Such a signature is of no use, and would be public.
  if (nonce === undefined || gas === undefined || maxFeePerGas === undefined || maxPriorityFeePerGas === undefined) {
    throw new ServiceError('invalid_request', 'the transaction is not complete: prepare it before it is signed', {
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
    throw unsupported('the chain serialises it in a way of its own')
  }
}

async function refuse(what: string): Promise<never> {
  throw new ServiceError('unsupported_method', `the wallet does not sign ${what}: its enclave signs transactions alone`)
}

function unsupported(reason: string) {
  return new ServiceError('unsupported_transaction', `the service does not sign this transaction: ${reason}`)
}
