import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { extname, join } from 'node:path'
import { listen, startInScope } from '@countersign/testing/stack'
import { build, defaultClientConditions, type InlineConfig, mergeConfig } from 'vite'

export type Pages = {
  /** One per origin of the pages. All show the same app. */
  ports: readonly number[]
  /** Builds a web app and serves it at these origins. */
  serve(config: InlineConfig): Promise<void>
  stop(): Promise<void>
}

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}

/**
 * Opens ports for a web app. Their numbers are known before there is an app: the service has to allow its origin, and the app
 * has to know the service.
 */
export function openPages(portCount: number): Promise<Pages> {
  return startInScope(async ({ add, createFolder }) => {
    const folder = await createFolder()
    const ports: number[] = []
    for (let index = 0; index < portCount; index++) {
      const server = createServer((request, response) => void answer(folder, request, response))
      const { port } = add(await listen(server), ({ stop }) => stop())
      ports.push(port)
    }
    return {
      ports,
      // Built rather than served from source: a file that is edited meanwhile changes nothing, and pages load at once.
      async serve(config) {
        await build(mergeConfig(createBaseConfig(folder), config))
      },
    }
  })
}

function createBaseConfig(outDir: string): InlineConfig {
  return {
    configFile: false,
    logLevel: 'error',
    // Workspace packages export their TypeScript under `source`.
    resolve: { conditions: ['source', ...defaultClientConditions] },
    build: { outDir, emptyOutDir: true, minify: false },
  }
}

/** A path without an extension is one of the app's routes. */
async function answer(folder: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost')
  const path = extname(pathname) === '' ? '/index.html' : pathname
  try {
    const bytes = await readFile(join(folder, path))
    response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream').end(bytes)
  } catch {
    response.writeHead(404).end()
  }
}
