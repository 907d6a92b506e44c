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
import { askForSignature, verifyWallet } from './verifyWallet.ts'

export { verifyOpening } from './verifyOffChain.ts'

/*
 * What a client signs beside transactions. `ServiceClient` loads this file when it is first needed: an app that only sends
 * transactions does not pay for it.
 */

/** What `signAuthorization` answers. */
export type SignAuthorizationResult = { signature: Hex; attestationSlug: string }

export type SignOffChainOptions = {
  /** Signs with this wallet or not at all: `wallet_changed` where another user is signed in now. */
  wallet?: WalletInfo | undefined
  /** The last word before the signing: what it throws ends it. */
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
  const call = createCall(client.config.apiBaseUrl)
  const digest = hashAuthorization(body)
  const ask = () => call('POST /sign/authorization', signDigestResponse, { body })
  const { signature, slug } = await askForSignature(client, { wallet, ask, digest })
  await verifyExact({ wallet, digest, signature, slug })
  return { signature, attestationSlug: slug }
}

/** It never asks again by itself: each call makes a proof of its own. */
async function signOffChain(
  client: Connection,
  asked: OffChain,
  options: SignOffChainOptions | undefined,
): Promise<SignOffChainResult> {
  const wallet = await prepare(client, options)
  const call = createCall(client.config.apiBaseUrl)
  const body = { ...asked.content, ...(options?.wallet && { wallet: wallet.address }) } as never
  const ask = () => call(`POST /sign/${asked.kind}`, offChainAnswer, { body })
  const answer = await askForSignature(client, { wallet, ask })
  return verifyOffChain({ wallet, asked, answer })
}

/** The wallet that the session has. The service signs with that one, whichever the caller has in mind. */
async function prepare(client: Connection, { wallet, assertWanted }: SignOffChainOptions = {}): Promise<WalletInfo> {
  const found = await verifyWallet(client, wallet)
  assertWanted?.()
  return found
}
