import type { Hex, WalletInfo } from '@countersign/protocol'
import { createError } from '../client/errors.ts'
import type { Call } from '../client/parseSignRequest.ts'
import { askRpc } from '../client/rpc.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import { signAndSend } from '../client/signAndSend.ts'
import { Eip1193Error, eip1193Codes, toNodeError, toRejection } from './errors.ts'
import type { RequestedTransaction } from './parseTransaction.ts'

export type SendTransactionParameters = {
  wallet: WalletInfo
  requested: RequestedTransaction
  /** Throws where the app may not use the wallet any more. */
  assertAllowed: () => void
  onConfirm: ((call: Call & { from: Hex }) => boolean | Promise<boolean>) | undefined
  onSigned: ((signed: { txHash: Hex; slug: string }) => void) | undefined
}

/** `eth_sendTransaction`: nonce and fees come from the RPC, the gas too where the dapp names none. */
export async function sendTransaction(client: ServiceClient, parameters: SendTransactionParameters): Promise<Hex> {
  const { wallet, requested } = parameters
  const { address } = wallet
  if (requested.from !== undefined && requested.from.toLowerCase() !== address.toLowerCase()) {
    throw new Eip1193Error(eip1193Codes.unauthorized, `${requested.from} is not the account of this wallet`)
  }
  const gas = requested.gas ?? (await estimateGas(client, { ...requested.call, account: address }))
  return confirmAndSend(client, { ...parameters, call: { ...requested.call, gas } }).catch((error: unknown) => {
    throw toRejection(error)
  })
}

async function confirmAndSend(
  client: ServiceClient,
  { wallet, requested, call, assertAllowed, onConfirm, onSigned }: SendTransactionParameters & { call: Call },
): Promise<Hex> {
  // Before the queue: a person who thinks it over must not hold up what is sent elsewhere.
  if (onConfirm && !(await onConfirm({ ...call, from: wallet.address }))) {
    throw new Eip1193Error(eip1193Codes.userRejected, 'the user rejected the transaction')
  }
  const { txHash } = await signAndSend(client, {
    wallet,
    call,
    assertWanted(transaction) {
      assertAllowed()
      assertWithinLimits(transaction, requested.limits)
    },
    onSigned({ txHash, attestationSlug: slug }) {
      // Not called here: what it throws must not keep the transaction from being sent.
      if (onSigned) queueMicrotask(() => onSigned({ txHash, slug }))
    },
  })
  return txHash
}

async function estimateGas(client: ServiceClient, call: { account: Hex; to: Hex; value: bigint; data: Hex }) {
  try {
    return await askRpc(() => client.publicClient.estimateGas(call))
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

function conflict(details: string) {
  return createError('invalid_request', 'nonce and fees come from the chain and cannot be overridden', { details })
}
