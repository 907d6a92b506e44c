import { readMembers } from '@countersign/protocol'
import { invalidRequest } from '../errors.ts'
import type { Store } from '../ports.ts'
import { type CreateVaultDeps, createVault } from '../vault/createVault.ts'
import { toVaultInfo } from '../vault/toVaultInfo.ts'
import { addRoutes, type HttpApp } from './addRoute.ts'
import type { Limiters } from './limiters.ts'
import { readJsonBody } from './readBody.ts'
import { routes } from './routes.ts'
import type { GetSignedIn } from './signedIn.ts'

export type VaultRoutesDeps = CreateVaultDeps & {
  store: Pick<Store, 'listVaults'>
  limiters: Limiters
  getSignedIn: GetSignedIn
}

/** As many as 16 KiB of policy can have: a list of digits has one for every two bytes. */
const MAX_POLICY_PARTS = 8_192

export function registerVaultRoutes(app: HttpApp, deps: VaultRoutesDeps): void {
  const { limiters, getSignedIn } = deps

  addRoutes(app, [
    {
      route: routes['GET /vaults'],
      async handle(c) {
        const { user } = await getSignedIn(c, limiters.own)
        return c.json({ vaults: (await deps.store.listVaults(user.id)).map(toVaultInfo) })
      },
    },
    {
      route: routes['POST /vaults'],
      async handle(c) {
        const { sid, session } = await getSignedIn(c, limiters.sign)
        const body = await readJsonBody(c.req.raw, { maxParts: MAX_POLICY_PARTS })
        const { policy } = readMembers(body, { required: ['policy'] }, invalidRequest)
        return c.json(toVaultInfo(await createVault(deps, { sid, session, policy })), 201)
      },
    },
  ])
}
