import type { Hex, WalletInfo } from '@countersign/protocol'
import { notifySigned } from '../client/notifySigned.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import { assertOwn, type ConfirmOptions, confirm } from './confirm.ts'
import { toRejection } from './errors.ts'
import type { RequestedContent } from './parseContent.ts'

export type SignContentParameters = ConfirmOptions & {
  wallet: WalletInfo
  requested: RequestedContent
  /** Throws where the app may not use the wallet any more. */
  assertAllowed: () => void
}

/** `personal_sign` and `eth_signTypedData_v4`. */
export async function signContent(client: ServiceClient, parameters: SignContentParameters): Promise<Hex> {
  const { wallet, requested } = parameters
  assertOwn(wallet, requested.from)
  return confirmAndSign(client, parameters).catch((error: unknown) => {
    throw toRejection(error)
  })
}

async function confirmAndSign(client: ServiceClient, parameters: SignContentParameters): Promise<Hex> {
  const { wallet, requested, assertAllowed, onConfirm, onSigned } = parameters
  const { kind, content } = requested.asked
  const from = wallet.address
  const options = { wallet, assertWanted: assertAllowed }
  const isMessage = kind === 'message'
  await confirm(onConfirm, isMessage ? { kind, from, ...content } : { kind, from, typedData: content })
  const { signature, attestationSlug, opening } = await (isMessage
    ? client.signMessage({ message: { raw: content.message } }, options)
    : client.signTypedData(content, options))
  notifySigned(onSigned, { kind: 'off-chain', slug: attestationSlug, opening })
  return signature
}
