import type { Hex, SignDigestResponse, SignOffChainResponse } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { Clock, Store } from '../ports.ts'
import { createSignerFinder, type SignerFinder } from '../sign/findSigner.ts'
import { createSignQuota } from '../sign/quota.ts'
import type { Asked, SigningRequest, SigningResult } from '../sign/signBatch.ts'
import { addRoute, type HttpApp } from './addRoute.ts'
import type { AppContext } from './context.ts'
import { type CookieRules, readSessionCookie } from './cookies.ts'
import { type Limiters, limitByUser } from './limiters.ts'
import { parseAuthorizationRequest, parseMessage, parseTypedData } from './parseAsked.ts'
import { parseSignDigestRequest } from './parseSignDigestRequest.ts'
import { readJsonBody } from './readBody.ts'
import { routes } from './routes.ts'
import type { GetSignedIn } from './signedIn.ts'

type FoundSigner = Awaited<ReturnType<SignerFinder['find']>>

export type SignRoutesDeps = {
  store: Pick<Store, 'findSigners' | 'findSignedAt'>
  clock: Clock
  sessionIdleMs: number
  sign(request: SigningRequest): Promise<SigningResult>
  /** Undefined: any. */
  allowedChainIds: readonly number[] | undefined
  /** New signatures of a user in 24 hours. Undefined: any. */
  signQuotaPerDay: number | undefined
  cookies: CookieRules
  limiters: Limiters
  getSignedIn: GetSignedIn
}

/** As many as 32 KiB of typed data can have: a list of digits has one for every two bytes. */
const MAX_TYPED_DATA_PARTS = 16_384

export function registerSignRoutes(app: HttpApp, deps: SignRoutesDeps): void {
  const { allowedChainIds, cookies, limiters, getSignedIn } = deps
  const signers = createSignerFinder(deps)
  const quota = createSignQuota({ ...deps, perDay: deps.signQuotaPerDay })

  /** What reads the body before the session is known. A caller without a session gets 401, whatever the body was. */
  async function readFirst<Value>(c: AppContext, read: () => Promise<Value>): Promise<Value> {
    const [result] = await Promise.allSettled([read()])
    if (result.status === 'fulfilled') return result.value
    await getSignedIn(c, limiters.sign)
    throw result.reason
  }

  function findSigner(c: AppContext, digest: Hex | undefined): Promise<FoundSigner> {
    const find = signers.find({ sid: readSessionCookie(cookies, c.req.header('cookie')), digest })
    return limitByUser(c, limiters.sign, find, ({ userId }) => userId)
  }

  /** `same` is the digest by which two requests are one signature. */
  async function sign(c: AppContext, signer: FoundSigner, asked: Asked, same: Hex | undefined): Promise<SigningResult> {
    const { sid, grant, keyId, walletId, address, signed } = signer
    if (walletId === undefined) throw new CoordinatorError('wallet_not_provisioned', 'the user has no wallet')
    const request = { sid, grant, keyId, walletId, address, asked }
    const onRefused = (seconds: number) => c.header('Retry-After', String(seconds))
    return signed ?? (await quota.run({ walletId, digest: same, onRefused }, () => deps.sign(request)))
  }

  async function answerPublic(c: AppContext, parse: (body: unknown) => Asked) {
    const asked = await readFirst(c, async () => parse(await readJsonBody(c.req.raw)))
    const signer = await findSigner(c, asked.digest)
    const { signature, slug } = await sign(c, signer, asked, asked.digest)
    const body: SignDigestResponse = { signature, slug }
    return c.json(body)
  }

  async function answerOffChain(c: AppContext, parse: (body: unknown) => Asked, limits?: { maxParts: number }) {
    const read = await readFirst(c, () => readJsonBody(c.req.raw, limits))
    // The digest of what is signed off the chain goes to the enclave's answer and nowhere else, the database included.
    const signer = await findSigner(c, undefined)
    // Only now: to hash typed data can take tens of milliseconds, which are neither for strangers nor for callers beyond their limit.
    const asked = parse(read)
    // Each call is a signature of its own, the same content or not.
    const { signature, slug, opening } = await sign(c, signer, asked, undefined)
    if (opening === undefined) throw new CoordinatorError('internal', 'an opening is missing')
    const body: SignOffChainResponse = { signature, slug, opening }
    return c.json(body)
  }

  addRoute(app, routes['POST /sign/digest'], (c) =>
    answerPublic(c, (body) => ({ kind: 'transaction', ...parseSignDigestRequest(body, { allowedChainIds }) })),
  )
  addRoute(app, routes['POST /sign/message'], (c) => answerOffChain(c, parseMessage))
  addRoute(app, routes['POST /sign/typed-data'], (c) =>
    answerOffChain(c, (body) => parseTypedData(body, { allowedChainIds }), { maxParts: MAX_TYPED_DATA_PARTS }),
  )
  addRoute(app, routes['POST /sign/authorization'], (c) =>
    answerPublic(c, (body) => parseAuthorizationRequest(body, { allowedChainIds })),
  )
}
