// The web app in a separate process: Vite's server, and the page's configuration, which the supervisor sends when everything runs. Also the
// demo site, on a separate port.

import type { ServerResponse } from 'node:http'
import { resolve } from 'node:path'
import { serve } from '@hono/node-server'
import { build, type Connect, createServer, type InlineConfig, type Plugin, preview } from 'vite'
import type { WebConfig } from '../apps/web/src/config.ts'
import type { DemoConfig } from './demo/createDemoApp.ts'

const ROOT = resolve(import.meta.dirname, '../apps/web')
const { PORT, DEMO_PORT, CACHE_DIR = '', IS_BUILT } = process.env

/** Requests during a restart wait for the rest of the stack instead of failing. */
const configuration = new Promise<{ web: WebConfig; demo: DemoConfig }>((settle) =>
  process.once('message', (message) => settle(message as { web: WebConfig; demo: DemoConfig })),
)

function serveConfiguration(): Plugin {
  async function answer(response: ServerResponse) {
    const body = JSON.stringify((await configuration).web)
    const headers = { 'cache-control': 'no-store', 'access-control-allow-origin': '*' }
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(body)
  }
  const use = ({ middlewares }: { middlewares: Connect.Server }) =>
    void middlewares.use((request, response, next) => {
      if (request.url?.split('?')[0] === '/config.json') void answer(response)
      else next()
    })
  return {
    name: 'countersign-configuration',
    // Before the app's own routes.
    enforce: 'pre',
    configureServer: use,
    configurePreviewServer: use,
  }
}

const app: InlineConfig = {
  root: ROOT,
  configFile: resolve(ROOT, 'vite.config.ts'),
  // Node runs the TypeScript directly, so nothing needs bundling.
  configLoader: 'native',
  // Separate from the app's cache, which two stacks would write at once.
  cacheDir: CACHE_DIR,
  clearScreen: false,
}
const place = { host: 'localhost', port: Number(PORT), strictPort: true }

async function startBuilt() {
  const output = { outDir: resolve(CACHE_DIR, 'built'), minify: false }
  await build({ ...app, logLevel: 'error', build: output })
  await preview({ ...app, build: output, preview: place, plugins: [serveConfiguration()] })
}

async function start() {
  const server = await createServer({
    ...app,
    // Includes imports of workers, or the first worker makes Vite bundle again and reload the page.
    optimizeDeps: { entries: ['index.html', 'src/**/*.worker.ts'] },
    server: {
      ...place,
      // Not the whole checkout: it contains the local root secret.
      fs: { allow: [ROOT, resolve(ROOT, '../../packages'), resolve(ROOT, '../../node_modules'), CACHE_DIR] },
    },
    plugins: [serveConfiguration()],
  })
  await server.listen()
  // All services have started, so the first page can compile before it is requested.
  void configuration.then(() => server.warmupRequest('/src/main.tsx'))
}

/** The demo site. It loads at the first visit, because most starts have none. */
async function startDemo() {
  const load = async () => (await import('./demo/createSite.ts')).createSite((await configuration).demo)
  let site: ReturnType<typeof load> | undefined
  async function answer(request: Request) {
    site ??= load()
    return (await site).fetch(request)
  }
  await new Promise((resolve, reject) => {
    serve({ fetch: answer, port: Number(DEMO_PORT), hostname: 'localhost' }, resolve).once('error', reject)
  })
}

// Vite ends the process on SIGTERM, which is no failure.
process.exitCode = 0
try {
  await Promise.all([IS_BUILT === 'true' ? startBuilt() : start(), startDemo()])
  console.log(JSON.stringify({ level: 'info', msg: 'Started the web app', address: `http://localhost:${PORT}` }))
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error))
  process.exit(1)
}
