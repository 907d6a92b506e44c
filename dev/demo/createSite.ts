import { randomBytes } from 'node:crypto'
import type { Hono } from 'hono'
import { createPublicClient, http } from 'viem'
import { verifySiweMessage } from 'viem/siwe'
import { build, defaultClientConditions } from 'vite'
import { createDemoApp, type DemoConfig } from './createDemoApp.ts'
import { createRelyingParty } from './relyingParty.ts'

const TYPES = { html: 'text/html; charset=utf-8', js: 'text/javascript', css: 'text/css' }

type Files = ReadonlyMap<string, string>

/** The demo site with its page, and a node for contract wallets. */
export function createSite(config: DemoConfig): Hono {
  const client = createPublicClient({ transport: http(config.rpcUrl) })
  const party = createRelyingParty(
    {
      now: () => new Date(),
      random: () => randomBytes(16).toString('hex'),
      verify: (parameters) => verifySiweMessage(client, parameters),
    },
    config,
  )
  let built: Promise<Files> | undefined
  async function getFile(path: string) {
    // At the first visit, because most starts have none.
    built ??= buildPage()
    const body = (await built).get(path)
    const type = TYPES[path.split('.').at(-1) as keyof typeof TYPES]
    return body === undefined || type === undefined ? undefined : { type, body }
  }
  return createDemoApp({ config, party, getFile })
}

async function buildPage(): Promise<Files> {
  const result = await build({
    root: import.meta.dirname,
    configFile: false,
    logLevel: 'error',
    // Workspace packages export their TypeScript under `source`.
    resolve: { conditions: ['source', ...defaultClientConditions] },
    build: { write: false, minify: false },
  })
  if (Array.isArray(result) || !('output' in result)) throw new Error('the page was built in another way than expected')
  return new Map(
    result.output.map((part) => [`/${part.fileName}`, part.type === 'chunk' ? part.code : String(part.source)]),
  )
}
