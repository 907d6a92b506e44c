import { CoordinatorError } from '../errors.ts'
import { getIpfsBlock } from '../publish/ipfs/gateway.ts'
import type { GetBlock } from '../publish/ipfs/pinner.ts'
import { toQuery } from './context.ts'
import { type Limiters, limit } from './limiters.ts'
import type { Handlers } from './router.ts'

export type GatewayRoutesDeps = {
  /** Undefined if this process stores no blocks. */
  getBlock?: GetBlock
  limiters: Limiters
}

export function registerGatewayRoutes(handlers: Handlers, { getBlock, limiters }: GatewayRoutesDeps): void {
  handlers.set('GET /ipfs/:cid', async (c) => {
    limit(c, limiters.proof, `ipfs:${c.clientAddress}`)
    if (getBlock === undefined) throw new CoordinatorError('not_found', 'this service has no gateway')
    const { status, headers, body } = await getIpfsBlock(
      { getBlock },
      {
        method: c.req.method === 'HEAD' ? 'HEAD' : 'GET',
        cid: c.params.cid ?? '',
        format: toQuery(c.req).get('format') ?? undefined,
        accept: c.req.header('accept'),
        ifNoneMatch: c.req.header('if-none-match'),
      },
    )
    for (const [name, value] of Object.entries(headers)) c.header(name, value)
    if (status === 400) {
      throw new CoordinatorError('invalid_request', 'invalid CID', {
        details: 'invalid CID: expected CIDv1, raw, sha2-256, base32',
      })
    }
    if (status === 404) throw new CoordinatorError('not_found', 'block not found')
    if (status === 406) throw new CoordinatorError('not_acceptable', 'none of the requested formats is available')
    return { status, body }
  })
}
