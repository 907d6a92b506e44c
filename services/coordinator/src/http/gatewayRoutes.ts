import { CoordinatorError } from '../errors.ts'
import { getIpfsBlock } from '../publish/ipfs/gateway.ts'
import type { GetBlock } from '../publish/ipfs/pinner.ts'
import { addRoute, type HttpApp } from './addRoute.ts'
import { type Limiters, limit } from './limiters.ts'

export type GatewayRoutesDeps = {
  /** Absent where this process holds no blocks. */
  getBlock?: GetBlock
  limiters: Limiters
}

export function registerGatewayRoutes(app: HttpApp, { getBlock, limiters }: GatewayRoutesDeps): void {
  addRoute(app, 'GET /ipfs/:cid', async (c) => {
    limit(c, limiters.proof, `ipfs:${c.get('clientAddress')}`)
    if (getBlock === undefined) throw new CoordinatorError('not_found', 'there is no gateway here')
    const { status, headers, body } = await getIpfsBlock(
      { getBlock },
      {
        method: c.req.method === 'HEAD' ? 'HEAD' : 'GET',
        cid: c.req.param('cid') ?? '',
        format: c.req.query('format'),
        accept: c.req.header('accept'),
        ifNoneMatch: c.req.header('if-none-match'),
      },
    )
    for (const [name, value] of Object.entries(headers)) c.header(name, value)
    if (status === 400) {
      throw new CoordinatorError('invalid_request', 'invalid CID', { details: 'not a CID of a block of this service' })
    }
    if (status === 404) throw new CoordinatorError('not_found', 'the block is not here')
    if (status === 406) throw new CoordinatorError('not_acceptable', 'no format that is asked for can be given')
    return body === null ? c.body(null, status) : c.body(body, status)
  })
}
