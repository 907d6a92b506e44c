import type { Hex, TypedData, WalletInfo } from '@countersign/protocol'
import { notifySigned, type SignedEvent } from '../client/connection.ts'
import { createError } from '../client/errors.ts'
import type { Call } from '../client/parseSignRequest.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import { signAndSend } from '../client/signAndSend.ts'
import { callNode, Eip1193Error, eip1193Codes, toRejection } from './errors.ts'
import type { RequestedContent, RequestedTransaction } from './parseTransaction.ts'

/** The request that `onConfirm` shows to the user. */
export type ConfirmRequest =
  | ({ kind: 'transaction'; from: Hex } & Call)
  | { kind: 'message'; from: Hex; message: Hex }
  | { kind: 'typed-data'; from: Hex; typedData: TypedData }

type ConfirmOptions = {
  onConfirm?: ((request: ConfirmRequest) => boolean | Promise<boolean>) | undefined
  onSigned?: ((signed: SignedEvent) => void) | undefined
}

/** Throws 4001 unless the user agrees. The listener gets a copy, so that it can't change the signed request. */
async function confirm(onConfirm: ConfirmOptions['onConfirm'], request: ConfirmRequest): Promise<void> {
  if (onConfirm && !(await onConfirm(structuredClone(request)))) {
    throw new Eip1193Error(eip1193Codes.userRejected, `the user rejected the ${WORDS[request.kind]}`)
  }
}

const WORDS = { transaction: 'transaction', message: 'message', 'typed-data': 'typed data' } as const

function assertOwn(wallet: WalletInfo, from: Hex | undefined): void {
  if (from !== undefined && from.toLowerCase() !== wallet.address.toLowerCase()) {
    throw new Eip1193Error(eip1193Codes.unauthorized, `${from} is not the account of this wallet`)
  }
}

export type Signing = ConfirmOptions & {
  wallet: WalletInfo
  /** Throws if the app has lost its permission. */
  assertAllowed: () => void
}

/** `eth_sendTransaction`. Nonce and fees come from the RPC, and the gas too if the dapp sets none. */
export async function sendTransaction(
  client: ServiceClient,
  { wallet, assertAllowed, onConfirm, onSigned }: Signing,
  requested: RequestedTransaction,
): Promise<Hex> {
  assertOwn(wallet, requested.from)
  const { call: withoutGas, limits } = requested
  const gas =
    requested.gas ?? (await callNode(() => client.publicClient.estimateGas({ ...withoutGas, account: wallet.address })))
  const call = { ...withoutGas, gas }
  return orReject(async () => {
    // Outside the queue, because a waiting user must not delay other transactions.
    await confirm(onConfirm, { kind: 'transaction', ...call, from: wallet.address })
    const { txHash } = await signAndSend(client, {
      wallet,
      isNamed: true,
      call,
      assertWanted(transaction) {
        assertAllowed()
        assertWithinLimits(transaction, limits)
      },
      onSigned: ({ txHash, attestationSlug: slug }) => notifySigned(onSigned, { kind: 'transaction', txHash, slug }),
    })
    return txHash
  })
}

function orReject(sign: () => Promise<Hex>): Promise<Hex> {
  return sign().catch((error: unknown) => {
    throw toRejection(error)
  })
}

/**
 * Callers can't set nonce and fees, but the provider must not ignore them either: it rejects a nonce that is not the next one, and a
 * maximum below the chain's fees.
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

/** `personal_sign` and `eth_signTypedData_v4`. */
export async function signContent(
  client: ServiceClient,
  { wallet, assertAllowed, onConfirm, onSigned }: Signing,
  { from: account, request: { kind, content } }: RequestedContent,
): Promise<Hex> {
  assertOwn(wallet, account)
  return orReject(async () => {
    const from = wallet.address
    const options = { wallet, assertWanted: assertAllowed }
    const isMessage = kind === 'message'
    await confirm(onConfirm, isMessage ? { kind, from, ...content } : { kind, from, typedData: content })
    const { signature, attestationSlug, opening } = await (isMessage
      ? client.signMessage({ message: { raw: content.message } }, options)
      : client.signTypedData(content, options))
    notifySigned(onSigned, { kind: 'off-chain', slug: attestationSlug, opening })
    return signature
  })
}
