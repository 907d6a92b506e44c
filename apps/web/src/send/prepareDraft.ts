import type { Hex } from '@countersign/sdk'
import { BaseError, formatEther, formatUnits, HttpRequestError, type PublicClient, TimeoutError, toHex } from 'viem'
import { readTokenBalance } from '../token/erc20.ts'
import { toServiceError } from '../words/explainError.ts'
import { type FieldErrors, type Payment, toTokenPayment } from './parseFields.ts'

/** A payment with its price, ready for confirmation. */
export type Draft = Omit<Payment, 'gas'> & {
  gas: bigint
  /** Maximum cost at current fees. */
  feeWei: bigint
  /** The rollup's data fee within it. */
  dataFeeWei: bigint
  /** The amount is the maximum. */
  isMax?: boolean
  /** Fees have risen since the first confirmation, so it needs another one. */
  isDearer?: boolean
}

type Chain = Pick<PublicClient, 'getBalance' | 'estimateFeesPerGas' | 'estimateGas' | 'call'>
type PrepareParameters = { from: Hex; payment: Payment /** The chain's coin. */; coin: string }
type Prepared = { draft: Draft } | { errors: FieldErrors }

const TRANSFER_GAS = 21_000n

/**
 * Queries the chain for a payment's gas and fee before anything is signed, because a signature is public even if the transaction can't be
 * paid. Rejects with a `ServiceError` if the chain is unavailable.
 */
export async function prepareDraft(chain: Chain, { from, payment, coin }: PrepareParameters): Promise<Prepared> {
  const { valueWei, transfer } = payment
  try {
    const [balance, price, held] = await Promise.all([
      chain.getBalance({ address: from }),
      readPrice(chain, payment),
      transfer === null ? 0n : readTokenBalance(chain, { token: transfer.token, holder: from }),
    ])
    if (transfer !== null && transfer.amount > held) {
      const { symbol, decimals } = transfer.token
      return { errors: { amount: `Insufficient balance: ${formatUnits(held, decimals)} ${symbol}.` } }
    }
    if (valueWei > balance) return { errors: { amount: `Insufficient balance: ${formatEther(balance)} ${coin}.` } }
    const estimate = payment.gas === null ? await estimateGas(chain, { from, payment }) : { gas: payment.gas }
    if ('errors' in estimate) return estimate
    const draft = toDraft(payment, { ...estimate, ...price })
    if (valueWei + draft.feeWei > balance)
      return { errors: { amount: describeShortage({ balance, feeWei: draft.feeWei, coin }) } }
    return { draft }
  } catch (error) {
    throw toServiceError(error)
  }
}

/** Prepares the maximum amount. For ether, it leaves a reserve that covers a fee increase of 50% before signing. */
export async function prepareMax(chain: Chain, { from, payment, coin }: PrepareParameters): Promise<Prepared> {
  const { transfer } = payment
  try {
    if (transfer !== null) {
      const amount = await readTokenBalance(chain, { token: transfer.token, holder: from })
      if (amount === 0n) return { errors: { amount: describeEmptyBalance(transfer.token.symbol) } }
      const prepared = await prepareDraft(chain, { from, payment: toTokenPayment({ ...transfer, amount }), coin })
      return 'draft' in prepared ? { draft: { ...prepared.draft, isMax: true } } : prepared
    }
    const [balance, price] = await Promise.all([chain.getBalance({ address: from }), readPrice(chain, payment)])
    if (balance === 0n) return { errors: { amount: describeEmptyBalance(coin) } }
    // Contracts may run code for any amount above zero.
    const some = { ...payment, valueWei: 1n }
    const estimate = payment.gas === null ? await estimateGas(chain, { from, payment: some }) : { gas: payment.gas }
    if ('errors' in estimate) return estimate
    const { feeWei, ...draft } = toDraft(payment, { ...estimate, ...price })
    const valueWei = balance - toReserve(feeWei)
    if (valueWei <= 0n) return { errors: { amount: describeShortage({ balance, feeWei: toReserve(feeWei), coin }) } }
    return { draft: { ...draft, feeWei, valueWei, isMax: true } }
  } catch (error) {
    throw toServiceError(error)
  }
}

/** Checks a confirmed draft again. If its fee has risen too far, returns a draft that needs another confirmation. With Max, it sends less. */
export async function prepareAgain(
  chain: Chain,
  { draft, ...rest }: Omit<PrepareParameters, 'payment'> & { draft: Draft },
): Promise<Prepared> {
  const prepared = await prepareDraft(chain, { ...rest, payment: draft })
  const isSame = 'draft' in prepared && !isDearer(prepared.draft.feeWei, draft.feeWei)
  if (isSame) return { draft: { ...draft, isDearer: false } }
  const renewed = draft.isMax ? await prepareMax(chain, { ...rest, payment: draft }) : prepared
  return 'draft' in renewed ? { draft: { ...renewed.draft, isDearer: true } } : renewed
}

type Price = { maxFeePerGas: bigint; dataFeeWei: bigint }

async function readPrice(chain: Chain, { data }: Payment): Promise<Price> {
  const [{ maxFeePerGas }, dataFeeWei] = await Promise.all([
    chain.estimateFeesPerGas(),
    readDataFee(chain, data.length / 2 - 1),
  ])
  return { maxFeePerGas, dataFeeWei }
}

function toDraft(payment: Payment, { gas, maxFeePerGas, dataFeeWei }: Price & { gas: bigint }): Draft {
  return { ...payment, gas, feeWei: gas * maxFeePerGas + dataFeeWei, dataFeeWei }
}

/** Estimates the gas. Adds 20% for code, because the chain's state may change before the transaction is mined. */
export async function estimateGas(
  chain: Pick<PublicClient, 'estimateGas'>,
  { from, payment }: Pick<PrepareParameters, 'from' | 'payment'>,
): Promise<{ gas: bigint } | { errors: FieldErrors }> {
  const { to, valueWei, data } = payment
  try {
    const gas = await chain.estimateGas({ account: from, to, value: valueWei, data })
    return { gas: gas <= TRANSFER_GAS ? TRANSFER_GAS : gas + gas / 5n }
  } catch (error) {
    if (!(error instanceof BaseError) || isUnreachable(error)) throw toServiceError(error)
    const reason = `This transaction would fail: ${toReason(error)}.`
    // Token payments have no gas field.
    if (payment.transfer !== null) return { errors: { amount: reason } }
    const field = data === '0x' ? 'to' : 'data'
    return { errors: { [field]: `${reason} To send it anyway, enter a gas limit.` } }
  }
}

function isUnreachable(error: BaseError): boolean {
  return error.walk((cause) => cause instanceof HttpRequestError || cause instanceof TimeoutError) !== null
}

function toReason(error: BaseError): string {
  return (error.details || error.shortMessage).slice(0, 200).replace(/[.\s]+$/, '')
}

function describeEmptyBalance(symbol: string): string {
  return `The balance is 0 ${symbol}.`
}

function describeShortage({ balance, feeWei, coin }: { balance: bigint; feeWei: bigint; coin: string }): string {
  const fee = formatEther(feeWei)
  if (feeWei >= balance)
    return `The balance of ${formatEther(balance)} ${coin} doesn’t cover the network fee of up to ${fee} ${coin}.`
  return `You can send at most ${formatEther(balance - feeWei)} ${coin}, because the network fee is up to ${fee} ${coin}.`
}

/** The tolerated fee increase between review and signing. */
const RISE = { numerator: 3n, denominator: 2n }

function toReserve(feeWei: bigint): bigint {
  return (feeWei * RISE.numerator + RISE.denominator - 1n) / RISE.denominator
}

/** Whether the fee has risen by more than that. A price that the user agreed to counts as agreed. */
function isDearer(nowWei: bigint, agreedWei: bigint): boolean {
  return nowWei > toReserve(agreedWei)
}

/** The contract with the data price on rollups of the OP stack, such as Base. */
const GAS_PRICE_ORACLE = '0x420000000000000000000000000000000000000F'
/** `getL1FeeUpperBound(uint256 unsignedTxSize)`. */
const SELECTOR = '0xf1c7a58b'
/** Size of a transaction without its data and signature. */
const TRANSACTION_BYTES = 120

/** Returns the rollup's data fee, or 0 on other chains, which have no such contract. */
async function readDataFee(chain: Pick<PublicClient, 'call'>, dataBytes: number): Promise<bigint> {
  const size = toHex(TRANSACTION_BYTES + dataBytes, { size: 32 }).slice(2)
  try {
    const { data } = await chain.call({ to: GAS_PRICE_ORACLE, data: `${SELECTOR}${size}` })
    return data !== undefined && /^0x[0-9a-f]{64}$/i.test(data) ? BigInt(data) : 0n
  } catch {
    return 0n
  }
}
