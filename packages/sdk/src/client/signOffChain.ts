import { type Hex, signDigestResponse, type WalletInfo } from '@countersign/protocol'
import { hashAuthorization } from 'viem/utils'
import { createCall } from './api.ts'
import type { Connection } from './connection.ts'
import {
  type OffChain,
  parseAuthorization,
  parseMessage,
  parseTypedData,
  type SignAuthorizationRequest,
  type SignMessageRequest,
  type SignTypedDataRequest,
} from './parseOffChain.ts'
import { offChainAnswer, type SignOffChainResult, verifyExact, verifyOffChain } from './verifyOffChain.ts'
import { requestSignature, verifyWallet } from './verifyWallet.ts'

export { verifyOpening } from './verifyOffChain.ts'

/*
 * Signs messages, typed data and authorizations. `ServiceClient` loads this file at first use, so that apps that only send
 * transactions stay small.
 */

export type SignAuthorizationResult = { signature: Hex; attestationSlug: string }

export type SignOffChainOptions = {
  /** Signs only with this wallet. Fails with `wallet_changed` if another user has signed in. */
  wallet?: WalletInfo | undefined
  /** Called right before the signing. If it throws, nothing is signed. */
  assertWanted?: (() => void) | undefined
}

/** `ServiceClient.signMessage`. */
export const signMessage = async (client: Connection, request: SignMessageRequest, options?: SignOffChainOptions) =>
  signOffChain(client, parseMessage(request), options)

/** `ServiceClient.signTypedData`. */
export const signTypedData = async (client: Connection, request: SignTypedDataRequest, options?: SignOffChainOptions) =>
  signOffChain(client, parseTypedData(request, client.config.chainId), options)

/** `ServiceClient.signAuthorization`. */
export async function signAuthorization(
  client: Connection,
  request: SignAuthorizationRequest,
  options?: SignOffChainOptions,
): Promise<SignAuthorizationResult> {
  const body = parseAuthorization(request, client.config.chainId)
  const wallet = await prepare(client, options)
  const call = createCall(client.config)
  const digest = hashAuthorization(body)
  const ask = () => call('POST /sign/authorization', signDigestResponse, { body, digest, signer: wallet.address })
  const { signature, slug } = await requestSignature(client, { wallet, ask, digest })
  await verifyExact({ wallet, digest, signature, slug })
  return { signature, attestationSlug: slug }
}

/** Never retries, because each call creates another proof. */
async function signOffChain(
  client: Connection,
  sent: OffChain,
  options: SignOffChainOptions | undefined,
): Promise<SignOffChainResult> {
  const wallet = await prepare(client, options)
  const call = createCall(client.config)
  const body = { ...sent.content, ...(options?.wallet && { wallet: wallet.address }) } as never
  const ask = () =>
    call(`POST /sign/${sent.kind}`, offChainAnswer, { body, digest: sent.digest, signer: wallet.address })
  const answer = await requestSignature(client, { wallet, ask })
  return verifyOffChain({ wallet, sent, answer })
}

async function prepare(client: Connection, { wallet, assertWanted }: SignOffChainOptions = {}): Promise<WalletInfo> {
  const found = await verifyWallet(client, wallet)
  assertWanted?.()
  return found
}
