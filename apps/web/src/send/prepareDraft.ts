import type { Hex } from '@countersign/sdk'
import { BaseError, formatEther, HttpRequestError, type PublicClient, TimeoutError } from 'viem'
import { toServiceError } from '../words/toServiceError.ts'
import type { FieldErrors, Payment } from './parseFields.ts'

/** A payment with its price, ready to be confirmed. */
export type Draft = {
  to: Hex
  valueWei: bigint
  data: Hex
  gas: bigint
  /** What gas costs at most, at the fees of this moment. */
  feeWei: bigint
  /** Fees have risen since it was confirmed the first time, so it has to be confirmed again. */
  isDearer?: boolean
}

type Chain = Pick<PublicClient, 'getBalance' | 'estimateFeesPerGas' | 'estimateGas'>

const TRANSFER_GAS = 21_000n

/**
 * Asks the chain what a payment needs, before anything is signed: a signature becomes public even if the transaction could not be
 * paid. Rejects with a `ServiceError` where the chain does not answer.
 */
export async function prepareDraft(
  chain: Chain,
  { from, payment }: { from: Hex; payment: Payment },
): Promise<{ draft: Draft } | { errors: FieldErrors }> {
  const { to, valueWei, data } = payment
  try {
    const [balance, { maxFeePerGas }] = await Promise.all([
      chain.getBalance({ address: from }),
      chain.estimateFeesPerGas(),
    ])
    if (valueWei > balance)
      return { errors: { amount: `That is more than the balance of ${formatEther(balance)} ETH.` } }
    const estimate = payment.gas === null ? await estimateGas(chain, { from, payment }) : { gas: payment.gas }
    if ('errors' in estimate) return estimate
    const feeWei = estimate.gas * maxFeePerGas
    if (valueWei + feeWei > balance) return { errors: { amount: tellShortage({ balance, feeWei }) } }
    return { draft: { to, valueWei, data, gas: estimate.gas, feeWei } }
  } catch (error) {
    throw toServiceError(error)
  }
}

/** The gas of a payment, with a fifth more where code runs: until it is mined the chain may move on. */
export async function estimateGas(
  chain: Pick<PublicClient, 'estimateGas'>,
  { from, payment }: { from: Hex; payment: Payment },
): Promise<{ gas: bigint } | { errors: FieldErrors }> {
  const { to, valueWei, data } = payment
  try {
    const gas = await chain.estimateGas({ account: from, to, value: valueWei, data })
    return { gas: gas <= TRANSFER_GAS ? TRANSFER_GAS : gas + gas / 5n }
  } catch (error) {
    if (!(error instanceof BaseError) || isUnreachable(error)) throw toServiceError(error)
    const field = data === '0x' ? 'to' : 'data'
    return {
      errors: {
        [field]: `The chain says that this would fail: ${toReason(error)}. To send it all the same, give the gas by hand.`,
      },
    }
  }
}

function isUnreachable(error: BaseError): boolean {
  return error.walk((cause) => cause instanceof HttpRequestError || cause instanceof TimeoutError) !== null
}

function toReason(error: BaseError): string {
  return (error.details || error.shortMessage).slice(0, 200).replace(/[.\s]+$/, '')
}

function tellShortage({ balance, feeWei }: { balance: bigint; feeWei: bigint }): string {
  const fee = formatEther(feeWei)
  if (feeWei >= balance)
    return `The balance of ${formatEther(balance)} ETH does not pay the network fee of up to ${fee} ETH.`
  return `With the network fee of up to ${fee} ETH, at most ${formatEther(balance - feeWei)} ETH can be sent.`
}
