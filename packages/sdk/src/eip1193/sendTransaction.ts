import type { Hex, TypedData, WalletInfo } from '@countersign/protocol'
import { notifySigned, type SignedEvent } from '../client/connection.ts'
import { createError } from '../client/errors.ts'
import type { Call } from '../client/parseSignRequest.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import { signAndSend } from '../client/signAndSend.ts'
import { askNode, Eip1193Error, eip1193Codes, toRejection } from './errors.ts'
import type { RequestedContent, RequestedTransaction } from './parseTransaction.ts'

/** What a user is asked to sign. */
export type ConfirmRequest =
  | ({ kind: 'transaction'; from: Hex } & Call)
  | { kind: 'message'; from: Hex; message: Hex }
  | { kind: 'typed-data'; from: Hex; typedData: TypedData }

type ConfirmOptions = {
  onConfirm?: ((request: ConfirmRequest) => boolean | Promise<boolean>) | undefined
  onSigned?: ((signed: SignedEvent) => void) | undefined
}

/** Throws 4001 unless the user agrees. The listener gets a copy: what it changes is not what is signed. */
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

/** How the app signs with a wallet. */
export type Signing = ConfirmOptions & {
  wallet: WalletInfo
  /** Throws where the app may not use the wallet any more. */
  assertAllowed: () => void
}

/** `eth_sendTransaction`: nonce and fees come from the RPC, the gas too where the dapp names none. */
export async function sendTransaction(
  client: ServiceClient,
  { wallet, assertAllowed, onConfirm, onSigned }: Signing,
  requested: RequestedTransaction,
): Promise<Hex> {
  assertOwn(wallet, requested.from)
  const { call: asked, limits } = requested
  const gas =
    requested.gas ?? (await askNode(() => client.publicClient.estimateGas({ ...asked, account: wallet.address })))
  const call = { ...asked, gas }
  return orReject(async () => {
    // Before the queue: a person who thinks it over must not hold up what is sent elsewhere.
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

/** What fails once the user has been asked is a rejection. */
function orReject(sign: () => Promise<Hex>): Promise<Hex> {
  return sign().catch((error: unknown) => {
    throw toRejection(error)
  })
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

/** `personal_sign` and `eth_signTypedData_v4`. */
export async function signContent(
  client: ServiceClient,
  { wallet, assertAllowed, onConfirm, onSigned }: Signing,
  { from: asked, asked: { kind, content } }: RequestedContent,
): Promise<Hex> {
  assertOwn(wallet, asked)
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
