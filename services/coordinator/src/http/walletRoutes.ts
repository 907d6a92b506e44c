import {
  getWallet,
  listTransactions,
  type ProvisionWalletDeps,
  provisionWallet,
  toWalletInfo,
} from '../accounts/wallet.ts'
import type { Store } from '../store/openStore.ts'
import { toQuery } from './context.ts'
import type { Limiters } from './limiters.ts'
import { assertEmptyBody, readJsonBody } from './readBody.ts'
import type { Handlers } from './router.ts'
import type { GetSignedIn } from './signedIn.ts'

export type WalletRoutesDeps = ProvisionWalletDeps & {
  store: Pick<Store, 'listTransactions'>
  limiters: Limiters
  getSignedIn: GetSignedIn
}

export function registerWalletRoutes(handlers: Handlers, deps: WalletRoutesDeps): void {
  const { limiters, getSignedIn } = deps

  handlers.set('GET /wallet/me', async (c) => {
    const { user, session } = await getSignedIn(c, limiters.own)
    return c.json(await getWallet(deps, { userId: user.id, session }))
  })

  handlers.set('GET /wallet/transactions', async (c) => {
    const { user } = await getSignedIn(c, limiters.own)
    const [limits, cursors] = [toQuery(c.req).getAll('limit'), toQuery(c.req).getAll('cursor')]
    return c.json(await listTransactions(deps, { userId: user.id, limits, cursors }))
  })

  handlers.set('POST /wallet/provision', async (c) => {
    const { user, session } = await getSignedIn(c, limiters.provision)
    assertEmptyBody(await readJsonBody(c.incoming))
    return c.json(toWalletInfo(await provisionWallet(deps, { user, session })))
  })
}
