import { expectTypeOf } from 'vitest'
import {
  type Authorization,
  type EndpointQuery,
  type EndpointRequest,
  type EndpointResponse,
  type Hex,
  type PathParameters,
  type SessionUser,
  type SignDigestRequest,
  type TypedData,
  toMethodAndPath,
  type WalletUse,
} from './index.ts'

/* Only for the type checker. */

expectTypeOf(toMethodAndPath<'GET /auth/me'>).parameters.toEqualTypeOf<[endpoint: 'GET /auth/me']>()
expectTypeOf<PathParameters<'GET /proof/:slug'>>().toEqualTypeOf<{ slug: string }>()
expectTypeOf(toMethodAndPath<'GET /proof/:slug/events'>)
  .parameter(1)
  .toHaveProperty('slug')
  .toEqualTypeOf<string>()

// @ts-expect-error the slug is missing
void (() => toMethodAndPath('GET /proof/:slug'))
// @ts-expect-error there is no such parameter
void (() => toMethodAndPath('GET /proof/:slug', { cid: '' }))
// @ts-expect-error there is no such endpoint
void (() => toMethodAndPath('GET /auth/you'))

expectTypeOf<EndpointResponse<'GET /auth/me'>>().toEqualTypeOf<SessionUser>()
expectTypeOf<EndpointResponse<'GET /ipfs/:cid'>>().toEqualTypeOf<never>()
expectTypeOf<EndpointRequest<'POST /sign/digest'>>().branded.toEqualTypeOf<SignDigestRequest & WalletUse>()
expectTypeOf<EndpointRequest<'POST /sign/message'>>().branded.toEqualTypeOf<{ message: Hex } & WalletUse>()
expectTypeOf<EndpointRequest<'POST /sign/typed-data'>>().branded.toEqualTypeOf<TypedData & WalletUse>()
expectTypeOf<EndpointRequest<'POST /sign/authorization'>>().branded.toEqualTypeOf<
  Authorization & Pick<WalletUse, 'stamp'>
>()
expectTypeOf<EndpointResponse<'POST /sign/message'>>().toEqualTypeOf<EndpointResponse<'POST /sign/typed-data'>>()
expectTypeOf<keyof EndpointResponse<'POST /sign/message'>>().toEqualTypeOf<'signature' | 'slug' | 'opening'>()
// An authorization is public and has no opening.
expectTypeOf<keyof EndpointResponse<'POST /sign/authorization'>>().toEqualTypeOf<'signature' | 'slug'>()
expectTypeOf<EndpointRequest<'POST /wallet/provision'>>().toEqualTypeOf<never>()
expectTypeOf<EndpointQuery<'GET /health/attestation'>>().toEqualTypeOf<{ nonce?: string | undefined }>()
expectTypeOf<EndpointQuery<'GET /health'>>().toEqualTypeOf<never>()
