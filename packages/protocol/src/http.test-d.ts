import { expectTypeOf } from 'vitest'
import {
  type EndpointQuery,
  type EndpointRequest,
  type EndpointResponse,
  type PathParameters,
  type SessionUser,
  type SignDigestRequest,
  toMethodAndPath,
} from './index.ts'

/* Read by the type checker alone. */

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
expectTypeOf<EndpointRequest<'POST /sign/digest'>>().toEqualTypeOf<SignDigestRequest>()
expectTypeOf<EndpointRequest<'POST /auth/logout'>>().toEqualTypeOf<never>()
expectTypeOf<EndpointQuery<'GET /health/attestation'>>().toEqualTypeOf<{ nonce?: string | undefined }>()
expectTypeOf<EndpointQuery<'GET /health'>>().toEqualTypeOf<never>()
