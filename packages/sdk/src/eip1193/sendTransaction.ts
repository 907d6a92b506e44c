import { type Hex, ServiceError, type WalletInfo } from '@countersign/protocol'
import { broadcast } from '../client/broadcast.ts'
import type { Call } from '../client/parseSignRequest.ts'
import { readNonceAndFees } from '../client/readNonceAndFees.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import { withSendLock } from '../client/sendLock.ts'
import { signTransaction } from '../client/signTransaction.ts'
import { Eip1193Error, eip1193Codes, invalidParams, toNodeError } from './errors.ts'
import type { RequestedTransaction } from './parseTransaction.ts'

export type SendTransactionParameters = {
  wallet: WalletInfo
  requested: RequestedTransaction
  onConfirm: ((call: Call & { from: Hex }) => boolean | Promise<boolean>) | undefined
  onSigned: ((signed: { txHash: Hex; slug: string }) => void) | undefined
}

/** `eth_sendTransaction`: nonce and fees come from the RPC, the gas too where the dapp names none. */
export async function sendTransaction(
  client: ServiceClient,
  { wallet, requested, onConfirm, onSigned }: SendTransactionParameters,
): Promise<Hex> {
  const { address } = wallet
  const { chainId } = client.config
  if (requested.from !== undefined && requested.from.toLowerCase() !== address.toLowerCase()) {
    throw new Eip1193Error(eip1193Codes.unauthorized, `${requested.from} is not the account of this wallet`)
  }
  const gas = requested.gas ?? (await estimateGas(client, { ...requested.call, account: address }))
  const call = { ...requested.call, gas }
  // Before the queue: a person who thinks it over must not hold up what is sent elsewhere.
  if (onConfirm && !(await onConfirm({ ...call, from: address }))) {
    throw new Eip1193Error(eip1193Codes.userRejected, 'the user rejected the transaction')
  }
  return withSendLock({ address, chainId }, async () => {
    const transaction = { chainId, ...call, ...(await readNonceAndFees(client, wallet)) }
    assertWithinLimits(transaction, requested.limits)
    const { serializedTransaction, txHash, slug } = await signTransaction(client, { wallet, transaction })
    if (onSigned) queueMicrotask(() => onSigned({ txHash, slug }))
    await broadcast(client.publicClient, { serializedTransaction, signed: { txHash, attestationSlug: slug } })
    return txHash
  })
}

async function estimateGas(client: ServiceClient, call: { account: Hex; to: Hex; value: bigint; data: Hex }) {
  try {
    return await client.publicClient.estimateGas(call)
  } catch (error) {
    throw toNodeError(error)
  }
}

/**
 * Nonce and fees cannot be overridden, and what a dapp names must not be passed over in silence: a nonce has to be the next one,
 * and a maximum is kept, or the transaction is refused. Paying less than the maximum is what a maximum allows.
 */
function assertWithinLimits(
  transaction: { nonce: number; maxFeePerGas: bigint; maxPriorityFeePerGas: bigint },
  limits: RequestedTransaction['limits'],
): void {
  if (limits.nonce !== undefined && limits.nonce !== BigInt(transaction.nonce)) {
    throw conflict(`nonce ${limits.nonce} was asked for, the next one is ${transaction.nonce}`)
  }
  for (const name of ['maxFeePerGas', 'maxPriorityFeePerGas'] as const) {
    const limit = limits[name]
    if (limit !== undefined && transaction[name] > limit) {
      throw conflict(`${name} is ${transaction[name]} wei on the chain now, above the ${limit} wei asked for`)
    }
  }
}

function conflict(reason: string) {
  const message = `nonce and fees come from the chain and cannot be overridden: ${reason}`
  return invalidParams(message, new ServiceError('invalid_request', message))
}
