import type { EndpointResponse, Endpoints, TransactionPage, TransactionSummary } from '@countersign/protocol'
import type { z } from '@hono/zod-openapi'
import { expectTypeOf } from 'vitest'
import type { Problem } from './problem.ts'
import type {
  attestationSchema,
  healthSchema,
  loginProvidersSchema,
  okSchema,
  problemSchema,
  proofPayloadSchema,
  readinessSchema,
  sessionUserSchema,
  signDigestRequestSchema,
  signDigestResponseSchema,
  transactionListSchema,
  walletInfoSchema,
} from './schemas.ts'

/* Read only by the type checker. The types are in the protocol; the schemas of the document must be of exactly those types. */

expectTypeOf<z.infer<typeof loginProvidersSchema>>().toEqualTypeOf<EndpointResponse<'GET /auth'>>()
expectTypeOf<z.infer<typeof sessionUserSchema>>().toEqualTypeOf<EndpointResponse<'GET /auth/me'>>()
expectTypeOf<z.infer<typeof okSchema>>().toEqualTypeOf<EndpointResponse<'POST /auth/logout'>>()
expectTypeOf<z.infer<typeof walletInfoSchema>>().toEqualTypeOf<EndpointResponse<'GET /wallet/me'>>()
expectTypeOf<z.infer<typeof walletInfoSchema>>().toEqualTypeOf<EndpointResponse<'POST /wallet/provision'>>()
expectTypeOf<z.infer<typeof signDigestRequestSchema>>().branded.toEqualTypeOf<
  Endpoints['POST /sign/digest']['request']
>()
expectTypeOf<z.infer<typeof signDigestResponseSchema>>().toEqualTypeOf<EndpointResponse<'POST /sign/digest'>>()
expectTypeOf<z.infer<typeof proofPayloadSchema>>().toEqualTypeOf<EndpointResponse<'GET /proof/:slug'>>()

/** An optional member of zod may be `undefined` too, a value that JSON does not have. */
type Json<Value> = { [Name in keyof Value]: Exclude<Value[Name], undefined> }

expectTypeOf<Json<z.infer<typeof healthSchema>>>().toEqualTypeOf<EndpointResponse<'GET /health'>>()
expectTypeOf<Json<z.infer<typeof readinessSchema>>>().toEqualTypeOf<EndpointResponse<'GET /health/ready'>>()
expectTypeOf<Json<z.infer<typeof attestationSchema>>>().toEqualTypeOf<EndpointResponse<'GET /health/attestation'>>()
expectTypeOf<Json<z.infer<typeof problemSchema>>>().toEqualTypeOf<Problem>()

/** One object for each kind, where the protocol has intersections; without the member that a transaction never has. */
type Listed<Summary> = { [Name in keyof Summary as Summary[Name] extends undefined ? never : Name]: Summary[Name] }
type ListedPage = z.infer<typeof transactionListSchema>
expectTypeOf<Listed<ListedPage['transactions'][number]>>().toEqualTypeOf<Listed<TransactionSummary>>()
expectTypeOf<keyof ListedPage>().toEqualTypeOf<keyof TransactionPage>()
