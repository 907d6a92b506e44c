import { parseRequest } from '@countersign/protocol'
import {
  type CreateVaultDeps,
  createListVaults,
  createVault,
  type ListVaultsDeps,
  toVaultInfo,
} from '../accounts/vaults.ts'
import { invalidBody } from '../errors.ts'
import type { Limiters } from './limiters.ts'
import { parseWallet } from './parseSigning.ts'
import { readJsonBody } from './readBody.ts'
import type { Handlers } from './router.ts'
import type { GetSignedIn } from './signedIn.ts'

export type VaultRoutesDeps = CreateVaultDeps &
  ListVaultsDeps & {
    limiters: Limiters
    getSignedIn: GetSignedIn
  }

/** The most that 16 KiB of policy can have: a list of digits has one per two bytes. */
const MAX_POLICY_PARTS = 8_192

export function registerVaultRoutes(handlers: Handlers, deps: VaultRoutesDeps): void {
  const { limiters, getSignedIn } = deps
  const listVaults = createListVaults(deps)

  handlers.set('GET /vaults', async (c) => {
    const { sid, session } = await getSignedIn(c, limiters.own)
    return c.json({ vaults: (await listVaults({ sid, session })).map(toVaultInfo) })
  })

  handlers.set('POST /vaults', async (c) => {
    const { sid, session } = await getSignedIn(c, limiters.sign)
    const body = await readJsonBody(c.incoming, { maxParts: MAX_POLICY_PARTS })
    const { policy, address: given } = parseRequest('POST /vaults', body, invalidBody)
    const address = parseWallet(given, 'address')
    return c.json(toVaultInfo(await createVault(deps, { sid, session, policy, address })), 201)
  })
}
