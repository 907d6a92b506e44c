import { LogError, parseTilePath, TILE_WIDTH } from '@countersign/log'
import { type EndpointResponse, isHex } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { LogStore } from '../store/logs.ts'
import { type Limiters, limit } from './limiters.ts'
import type { Handlers } from './router.ts'

export type LogRoutesDeps = {
  logStore: Pick<LogStore, 'listLogs' | 'findCosigned' | 'readTiles' | 'readBundle'>
  limiters: Limiters
}

/** Serves the logs as c2sp.org/tlog-tiles describes, up to the newest cosigned checkpoint. */
export function registerLogRoutes(handlers: Handlers, { logStore, limiters }: LogRoutesDeps): void {
  /** By log hash. Sizes only grow, so most tiles need no read of the newest checkpoint. */
  const knownSizes = new Map<string, number>()

  handlers.set('GET /log', async (c) => {
    limit(c, limiters.proof, `log:${c.clientAddress}`)
    const logs: EndpointResponse<'GET /log'>['logs'] = await logStore.listLogs()
    c.header('cache-control', 'no-cache')
    return c.json({ logs })
  })

  handlers.set('GET /log/:hash/checkpoint', async (c) => {
    limit(c, limiters.proof, `log:${c.clientAddress}`)
    const cosigned = await findCosigned(c.params.hash ?? '')
    if (cosigned === undefined) throw notFound()
    c.header('cache-control', 'no-cache')
    c.header('content-type', 'text/plain; charset=utf-8')
    return { status: 200, body: cosigned.note }
  })

  handlers.set('GET /log/:hash/tile/:path{.+}', async (c) => {
    limit(c, limiters.proof, `log:${c.clientAddress}`)
    // The path as sent: with percent-encoding, caches would store the same tile under several names.
    const [, hash = '', path = ''] = /^\/log\/([^/]+)\/(.+)$/.exec(c.req.rawPath) ?? []
    const bytes = await readPath(hash, path)
    if (bytes === undefined) throw notFound()
    c.header('cache-control', 'public, max-age=31536000, immutable')
    c.header('content-type', 'application/octet-stream')
    return { status: 200, body: bytes }
  })

  async function findCosigned(hash: string) {
    return isHex(hash, 32) ? logStore.findCosigned(hash) : undefined
  }

  async function readPath(hash: string, path: string): Promise<Uint8Array | undefined> {
    const tile = parsePath(path)
    if (tile === undefined) return undefined
    const level = tile.kind === 'tile' ? tile.level : 0
    // The first entry after those that the tile covers. It is inexact above 2^53, which no log reaches.
    const end = (tile.index * TILE_WIDTH + tile.width) * TILE_WIDTH ** level
    if (end > (knownSizes.get(hash) ?? 0)) {
      const cosigned = await findCosigned(hash)
      if (cosigned !== undefined) knownSizes.set(hash, cosigned.size)
      if (end > (cosigned?.size ?? 0)) return undefined
    }
    if (tile.kind === 'entries') return logStore.readBundle(hash, tile)
    const [bytes] = await logStore.readTiles(hash, [tile])
    return bytes
  }
}

function parsePath(path: string): ReturnType<typeof parseTilePath> | undefined {
  try {
    return parseTilePath(path)
  } catch (error) {
    if (error instanceof LogError) return undefined
    throw error
  }
}

function notFound() {
  return new CoordinatorError('not_found', 'the log has no such tile, or not yet')
}
