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
  const { asked } = requested
  const from = wallet.address
  const options = { wallet, assertWanted: assertAllowed }
  if (asked.kind === 'message') {
    const { message } = asked.content
    await confirm(onConfirm, { kind: 'message', from, message })
  } else await confirm(onConfirm, { kind: 'typed-data', from, typedData: asked.content })
  const { signature, attestationSlug, opening } = await (asked.kind === 'message'
    ? client.signMessage({ message: { raw: asked.content.message } }, options)
    : client.signTypedData(asked.content, options))
  notifySigned(onSigned, { kind: 'off-chain', slug: attestationSlug, opening })
  return signature
}
