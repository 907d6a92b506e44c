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

/** The logs as c2sp.org/tlog-tiles has them: only what a quorum of witnesses has cosigned. */
export function registerLogRoutes(handlers: Handlers, { logStore, limiters }: LogRoutesDeps): void {
  /** By the hash of the log. Sizes only grow, so that most tiles need no look at the newest. */
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
    // As it was sent: a spelling with percent signs would be a second thing to cache.
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
    const asked = parsePath(path)
    if (asked === undefined) return undefined
    const level = asked.kind === 'tile' ? asked.level : 0
    // The first entry that the tile does not need. Beyond 2^53 it is not exact, and no log has so many.
    const end = (asked.index * TILE_WIDTH + asked.width) * TILE_WIDTH ** level
    if (end > (knownSizes.get(hash) ?? 0)) {
      const cosigned = await findCosigned(hash)
      if (cosigned !== undefined) knownSizes.set(hash, cosigned.size)
      if (end > (cosigned?.size ?? 0)) return undefined
    }
    if (asked.kind === 'entries') return logStore.readBundle(hash, asked)
    const [tile] = await logStore.readTiles(hash, [asked])
    return tile
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
  return new CoordinatorError('not_found', 'the log has no such part, or not yet')
}
