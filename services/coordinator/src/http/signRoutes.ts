import type { SignDigestResponse } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { Clock, Store } from '../ports.ts'
import { createSignerFinder } from '../sign/findSigner.ts'
import type { SignDigestRequest, SignDigestResult } from '../sign/signDigest.ts'
import { addRoute, type HttpApp } from './addRoute.ts'
import type { AppContext } from './context.ts'
import { type CookieRules, readSessionCookie } from './cookies.ts'
import { type Limiters, limitByUser } from './limiters.ts'
import { parseSignDigestRequest } from './parseSignDigestRequest.ts'
import { readJsonBody } from './readBody.ts'
import { routes } from './routes.ts'
import type { GetSignedIn } from './signedIn.ts'

export type SignRoutesDeps = {
  store: Pick<Store, 'findSigners'>
  clock: Clock
  sessionIdleMs: number
  signDigest(request: SignDigestRequest): Promise<SignDigestResult>
  /** Undefined: any. */
  allowedChainIds: readonly number[] | undefined
  cookies: CookieRules
  limiters: Limiters
  getSignedIn: GetSignedIn
}

export function registerSignRoutes(app: HttpApp, deps: SignRoutesDeps): void {
  const { allowedChainIds, cookies, limiters, getSignedIn } = deps
  const signers = createSignerFinder(deps)

  async function readRequest(c: AppContext) {
    return parseSignDigestRequest(await readJsonBody(c.req.raw), { allowedChainIds })
  }

  addRoute(app, routes['POST /sign/digest'], async (c) => {
    const [parsed] = await Promise.allSettled([readRequest(c)])
    if (parsed.status === 'rejected') {
      // A caller without a session gets 401, whatever the body was.
      await getSignedIn(c, limiters.sign)
      throw parsed.reason
    }
    const { digest, txMetadata } = parsed.value
    const cookie = readSessionCookie(cookies, c.req.header('cookie'))
    const signer = await limitByUser(c, limiters.sign, signers.find({ sid: cookie, digest }), ({ userId }) => userId)
    const { sid, grant, keyId, walletId, address, signed } = signer
    if (walletId === undefined) throw new CoordinatorError('wallet_not_provisioned', 'the user has no wallet')
    const request = { sid, grant, keyId, walletId, address, digest, txMetadata }
    const { signature, slug } = signed ?? (await deps.signDigest(request))
    const body: SignDigestResponse = { signature, slug }
    return c.json(body)
  })
}
