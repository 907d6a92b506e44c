import type { WalletUse } from '@countersign/protocol'
import type { PublicClient, SignableMessage, TypedDataDomain } from 'viem'
import { expectTypeOf } from 'vitest'
import type { ServiceApi } from './client/index.ts'
import {
  type AttestationReceiptV1,
  type AttestationReceiptV2,
  type Hex,
  type Opening,
  type ProofPayload,
  type SdkErrorCode,
  ServiceClient,
  type ServiceClientConfig,
  type ServiceContextValue,
  type ServiceError,
  type Session,
  type SessionUser,
  type SignedEvent,
  type SignMessageRequest,
  type SignOffChainResult,
  type SignRequest,
  type SignResult,
  type SignTypedDataRequest,
  type TransactionPage,
  type TransactionSummary,
  type TxMetadata,
  useAttestation,
  useService,
  type useSign,
  type useSignMessage,
  type useSignTypedData,
  useWallet,
  type WalletInfo,
} from './index.ts'

/* For the type checker only. */

expectTypeOf(useService).returns.toEqualTypeOf<ServiceContextValue>()
expectTypeOf<keyof ServiceContextValue>().toEqualTypeOf<
  'client' | 'user' | 'wallet' | 'ready' | 'error' | 'refresh' | 'login' | 'logout'
>()

// As a click handler it must accept an event, and options without unknown members.
void ((login: ServiceContextValue['login']): ((event: { clientX: number }) => void) => login)
void ((login: ServiceContextValue['login']) => login({ provider: 'apple' }))
// @ts-expect-error misspelt
void ((login: ServiceContextValue['login']) => login({ providr: 'apple' }))

expectTypeOf(useWallet).returns.toEqualTypeOf<{
  user: SessionUser | null
  wallet: WalletInfo | null
  ready: boolean
  login: () => void
  logout: () => Promise<void>
  refresh: () => Promise<void>
}>()

expectTypeOf<ReturnType<typeof useSign>['signAndSend']>().toEqualTypeOf<(request: SignRequest) => Promise<SignResult>>()
expectTypeOf<Omit<ReturnType<typeof useSign>, 'signAndSend'>>().toEqualTypeOf<{
  pending: boolean
  error: ServiceError | null
  lastResult: SignResult | null
}>()

expectTypeOf<Omit<ReturnType<typeof useSignMessage>, 'signMessage'>>().toEqualTypeOf<{
  pending: boolean
  error: ServiceError | null
  lastResult: SignOffChainResult | null
}>()
expectTypeOf<ReturnType<typeof useSignMessage>['signMessage']>()
  .parameter(0)
  .toEqualTypeOf<{ message: string | { raw: Hex | Uint8Array } }>()
expectTypeOf<ReturnType<typeof useSignMessage>['signMessage']>().returns.resolves.toEqualTypeOf<SignOffChainResult>()
expectTypeOf<ReturnType<typeof useSignTypedData>['signTypedData']>().parameter(0).toEqualTypeOf<SignTypedDataRequest>()
// Accepts viem's types.
expectTypeOf<{
  domain: TypedDataDomain
  types: { A: readonly [{ name: 'a'; type: 'uint256' }] }
  primaryType: 'A'
  message: { a: bigint }
}>().toExtend<SignTypedDataRequest>()
expectTypeOf<SignableMessage>().toExtend<SignMessageRequest['message']>()
expectTypeOf<keyof SignOffChainResult>().toEqualTypeOf<'signature' | 'attestationSlug' | 'opening'>()
expectTypeOf<SignedEvent['kind']>().toEqualTypeOf<'transaction' | 'authorization' | 'off-chain'>()
expectTypeOf<Extract<SignedEvent, { kind: 'off-chain' }>['opening']>().toEqualTypeOf<Opening>()
expectTypeOf<ServiceClient['signAuthorization']>().returns.resolves.toEqualTypeOf<{
  signature: Hex
  attestationSlug: string
}>()

expectTypeOf(useAttestation).parameter(0).toEqualTypeOf<string | null | undefined>()
expectTypeOf(useAttestation).parameter(1).toEqualTypeOf<{ opening?: Opening | undefined } | undefined>()
expectTypeOf(useAttestation).returns.toEqualTypeOf<{
  proof: ProofPayload | null
  loading: boolean
  error: ServiceError | null
}>()

expectTypeOf<ServiceClientConfig>().toEqualTypeOf<{
  apiBaseUrl: string
  chainId: number
  rpcUrl?: string | undefined
  maxFeePerGas?: bigint | undefined
  session?: Session | undefined
}>()
expectTypeOf(ServiceClient).toBeConstructibleWith({ apiBaseUrl: '', chainId: 1 })
expectTypeOf<ServiceClient['publicClient']>().toEqualTypeOf<PublicClient>()
expectTypeOf<ServiceClient['signAndSend']>().toEqualTypeOf<
  (request: SignRequest, options?: { wallet?: WalletInfo | undefined }) => Promise<SignResult>
>()
expectTypeOf<ServiceClient['api']>().toEqualTypeOf<ServiceApi>()
expectTypeOf<ServiceApi['me']>().toEqualTypeOf<() => Promise<SessionUser | null>>()
expectTypeOf<ServiceApi['getWallet']>().toEqualTypeOf<() => Promise<WalletInfo | null>>()
expectTypeOf<ServiceApi['provisionWallet']>().toEqualTypeOf<() => Promise<WalletInfo>>()
expectTypeOf<{ digest: Hex; txMetadata: TxMetadata }>().toExtend<Parameters<ServiceApi['signDigest']>[0]>()
expectTypeOf<Omit<Parameters<ServiceApi['signDigest']>[0], 'digest' | 'txMetadata'>>().toEqualTypeOf<WalletUse>()
expectTypeOf<ServiceApi['signDigest']>().returns.resolves.toEqualTypeOf<{ signature: Hex; slug: string }>()
expectTypeOf<ServiceApi['listTransactions']>().returns.resolves.toEqualTypeOf<TransactionPage>()
expectTypeOf<TransactionPage['transactions']>().toEqualTypeOf<TransactionSummary[]>()

expectTypeOf<TransactionSummary['kind']>().toEqualTypeOf<
  'authorization' | 'off-chain' | 'address' | 'revocation' | undefined
>()
expectTypeOf<Extract<TransactionSummary, { kind?: undefined }>['value']>().toEqualTypeOf<string>()
expectTypeOf<Extract<TransactionSummary, { kind: 'authorization' }>['implementation']>().toEqualTypeOf<Hex>()

expectTypeOf<{ to: Hex }>().toExtend<SignRequest>()
expectTypeOf<{ to: Hex; value: '0.1' }>().toExtend<SignRequest>()
expectTypeOf<{ to: Hex; value: number }>().not.toExtend<SignRequest>()
expectTypeOf<{ to: null }>().not.toExtend<SignRequest>()
expectTypeOf<keyof SignRequest>().toEqualTypeOf<'to' | 'value' | 'data' | 'gas'>()
expectTypeOf<keyof SignResult>().toEqualTypeOf<'txHash' | 'attestationSlug'>()

expectTypeOf<ProofPayload['status']>().toEqualTypeOf<
  'pending_pin' | 'pending_onchain' | 'complete' | 'pin_failed' | 'onchain_failed'
>()
expectTypeOf<ProofPayload['receipt']>().toEqualTypeOf<AttestationReceiptV1 | AttestationReceiptV2 | null>()
expectTypeOf<ProofPayload['kind']>().toEqualTypeOf<
  'authorization' | 'off-chain' | 'address' | 'revocation' | undefined
>()
expectTypeOf<AttestationReceiptV1>().toHaveProperty('signer')
expectTypeOf<AttestationReceiptV1>().toHaveProperty('coordinator')
expectTypeOf<AttestationReceiptV1>().toHaveProperty('entropy')

expectTypeOf<'wallet_not_ready'>().toExtend<SdkErrorCode>()
expectTypeOf<'wallet_changed' | 'unsupported_transaction' | 'unsupported_method'>().toExtend<SdkErrorCode>()
expectTypeOf<string>().not.toExtend<SdkErrorCode>()
expectTypeOf<ServiceError['signed']>().toEqualTypeOf<SignResult | undefined>()
expectTypeOf<ServiceError['status']>().toEqualTypeOf<number | undefined>()
