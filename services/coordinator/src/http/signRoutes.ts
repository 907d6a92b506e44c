import type { SignDigestResponse, SignOffChainResponse } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { Clock, Store } from '../ports.ts'
import { createSignerFinder } from '../sign/findSigner.ts'
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

  async function sign(c: AppContext, read: () => Promise<Asked>): Promise<SigningResult> {
    const [parsed] = await Promise.allSettled([read()])
    if (parsed.status === 'rejected') {
      // A caller without a session gets 401, whatever the body was.
      await getSignedIn(c, limiters.sign)
      throw parsed.reason
    }
    const asked = parsed.value
    const isOffChain = asked.kind === 'message' || asked.kind === 'typed-data'
    const cookie = readSessionCookie(cookies, c.req.header('cookie'))
    // The digest of what is signed off the chain goes to the enclave's answer and nowhere else, the database included.
    const find = signers.find({ sid: cookie, digest: isOffChain ? undefined : asked.digest })
    const signer = await limitByUser(c, limiters.sign, find, ({ userId }) => userId)
    const { sid, grant, keyId, walletId, address, signed } = signer
    if (walletId === undefined) throw new CoordinatorError('wallet_not_provisioned', 'the user has no wallet')
    const request = { sid, grant, keyId, walletId, address, asked }
    const onRefused = (seconds: number) => c.header('Retry-After', String(seconds))
    // Each call that signs off the chain is a signature of its own, the same content or not.
    const same = isOffChain ? undefined : asked.digest
    return signed ?? (await quota.run({ walletId, digest: same, onRefused }, () => deps.sign(request)))
  }

  async function answerPublic(c: AppContext, read: () => Promise<Asked>) {
    const { signature, slug } = await sign(c, read)
    const body: SignDigestResponse = { signature, slug }
    return c.json(body)
  }

  async function answerOffChain(c: AppContext, read: () => Promise<Asked>) {
    const { signature, slug, opening } = await sign(c, read)
    if (opening === undefined) throw new CoordinatorError('internal', 'an opening is missing')
    const body: SignOffChainResponse = { signature, slug, opening }
    return c.json(body)
  }

  addRoute(app, routes['POST /sign/digest'], (c) =>
    answerPublic(c, async () => ({
      kind: 'transaction',
      ...parseSignDigestRequest(await readJsonBody(c.req.raw), { allowedChainIds }),
    })),
  )
  addRoute(app, routes['POST /sign/message'], (c) =>
    answerOffChain(c, async () => parseMessage(await readJsonBody(c.req.raw))),
  )
  addRoute(app, routes['POST /sign/typed-data'], (c) =>
    answerOffChain(c, async () => parseTypedData(await readJsonBody(c.req.raw, { maxParts: MAX_TYPED_DATA_PARTS }))),
  )
  addRoute(app, routes['POST /sign/authorization'], (c) =>
    answerPublic(c, async () => parseAuthorizationRequest(await readJsonBody(c.req.raw), { allowedChainIds })),
  )
}
