import type { SignDigestResponse } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { Clock, Store } from '../ports.ts'
import { createSignerFinder } from '../sign/findSigner.ts'
import { createSignQuota } from '../sign/quota.ts'
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
  store: Pick<Store, 'findSigners' | 'findSignedAt'>
  clock: Clock
  sessionIdleMs: number
  signDigest(request: SignDigestRequest): Promise<SignDigestResult>
  /** Undefined: any. */
  allowedChainIds: readonly number[] | undefined
  /** New signatures of a user in 24 hours. Undefined: any. */
  signQuotaPerDay: number | undefined
  cookies: CookieRules
  limiters: Limiters
  getSignedIn: GetSignedIn
}

export function registerSignRoutes(app: HttpApp, deps: SignRoutesDeps): void {
  const { allowedChainIds, cookies, limiters, getSignedIn } = deps
  const signers = createSignerFinder(deps)
  const quota = createSignQuota({ ...deps, perDay: deps.signQuotaPerDay })

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
    const onRefused = (seconds: number) => c.header('Retry-After', String(seconds))
    const sign = () => quota.run({ walletId, digest, onRefused }, () => deps.signDigest(request))
    const { signature, slug } = signed ?? (await sign())
    const body: SignDigestResponse = { signature, slug }
    return c.json(body)
  })
}
