import {
  getWallet,
  listTransactions,
  type ProvisionWalletDeps,
  provisionWallet,
  toWalletInfo,
} from '../accounts/wallet.ts'
import type { Store } from '../store/openStore.ts'
import { addRoute, type HttpApp } from './addRoute.ts'
import type { Limiters } from './limiters.ts'
import { assertEmptyBody, readJsonBody } from './readBody.ts'
import type { GetSignedIn } from './signedIn.ts'

export type WalletRoutesDeps = ProvisionWalletDeps & {
  store: Pick<Store, 'listTransactions'>
  limiters: Limiters
  getSignedIn: GetSignedIn
}

export function registerWalletRoutes(app: HttpApp, deps: WalletRoutesDeps): void {
  const { limiters, getSignedIn } = deps

  addRoute(app, 'GET /wallet/me', async (c) => {
    const { user, session } = await getSignedIn(c, limiters.own)
    return c.json(await getWallet(deps, { userId: user.id, session }))
  })

  addRoute(app, 'GET /wallet/transactions', async (c) => {
    const { user } = await getSignedIn(c, limiters.own)
    const [limits, cursors] = [c.req.queries('limit') ?? [], c.req.queries('cursor') ?? []]
    return c.json(await listTransactions(deps, { userId: user.id, limits, cursors }))
  })

  addRoute(app, 'POST /wallet/provision', async (c) => {
    const { user, session } = await getSignedIn(c, limiters.provision)
    assertEmptyBody(await readJsonBody(c.req.raw))
    return c.json(toWalletInfo(await provisionWallet(deps, { user, session })))
  })
}
