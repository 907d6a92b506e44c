import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build, defaultClientConditions } from 'vite'
import { expect, test } from 'vitest'

type BundleSize = {
  /** Loaded with the page. */
  bytes: number
  /** Including chunks loaded at first use. */
  allBytes: number
  modules: string[]
}

/** Builds an app with this code, and measures it minified and gzipped, without viem and React. */
async function measure(code: string): Promise<BundleSize> {
  const output = await build({
    configFile: false,
    logLevel: 'silent',
    root: fileURLToPath(new URL('..', import.meta.url)),
    resolve: { conditions: ['source', ...defaultClientConditions] },
    plugins: [
      {
        name: 'app',
        resolveId: (id) => (id === 'app' ? fileURLToPath(new URL('app.ts', import.meta.url)) : undefined),
        load: (id) => (id.endsWith('/test/app.ts') ? code : undefined),
      },
    ],
    build: {
      write: false,
      minify: true,
      modulePreload: false,
      rolldownOptions: { input: 'app', external: [/^viem(\/|$)/, /^react(\/|$)/] },
    },
  })
  const files = (Array.isArray(output) ? output : [output]).flatMap((one) => ('output' in one ? one.output : []))
  const chunks = files.filter((file) => file.type === 'chunk')
  const sizes = new Map(chunks.map(({ fileName, code }) => [fileName, gzipSync(code).length]))
  // The page loads its own chunk and the chunks that it imports.
  const first = new Set(chunks.filter(({ isEntry }) => isEntry).map(({ fileName }) => fileName))
  for (const name of first) {
    for (const other of chunks.find(({ fileName }) => fileName === name)?.imports ?? [])
      if (sizes.has(other)) first.add(other)
  }
  const sum = (names: Iterable<string>) => [...names].reduce((total, name) => total + (sizes.get(name) ?? 0), 0)
  const modules = chunks.flatMap((chunk) => Object.keys(chunk.modules))
  return { bytes: sum(first), allBytes: sum(sizes.keys()), modules }
}

const useNames = (names: string) => `import { ${names} } from '../src/index.ts'\nglobalThis.used = { ${names} }`
const useAll = (entry: string) => `import * as all from '../src/${entry}'\nglobalThis.used = all`

test('an app with the specification’s imports loads at most 8 kB gzipped, without viem and React', async () => {
  const names = 'ServiceClient, ServiceProvider, useAttestation, useService, useSign, useWallet'
  const { bytes, allBytes } = await measure(useNames(names))
  console.log(
    `names of the specification: ${bytes} bytes minified and gzipped; ${allBytes - bytes} at the first message`,
  )
  expect(bytes).toBeLessThanOrEqual(8_000)
})

test('the main entry is at most 10 kB gzipped, with later chunks, without viem and React', async () => {
  const { bytes, allBytes, modules } = await measure(useAll('index.ts'))
  console.log(`@countersign/sdk: ${bytes} bytes minified and gzipped, ${allBytes} with later chunks`)
  expect(allBytes).toBeLessThanOrEqual(10_000)
  // The client, the hooks and some of the protocol, but none of our cryptography.
  for (const name of ['react/useSign.ts', 'client/signOffChain.ts']) {
    expect(modules.some((path) => path.endsWith(name))).toBe(true)
  }
  expect(modules.filter((path) => /@noble|canonicalize/.test(path))).toEqual([])
})

test('the client without React is smaller and does not import React', async () => {
  const { bytes, modules } = await measure(useAll('client/index.ts'))
  console.log(`@countersign/sdk/client: ${bytes} bytes minified and gzipped, without viem`)
  expect(bytes).toBeLessThanOrEqual(6_500)
  expect(modules.filter((path) => path.includes('/react/'))).toEqual([])
})

test('the entry for agents is at most 12 kB gzipped, without viem, and does not import React', async () => {
  const { bytes, allBytes, modules } = await measure(useAll('agent/index.ts'))
  console.log(`@countersign/sdk/agent: ${bytes} bytes minified and gzipped, without viem`)
  expect(allBytes).toBeLessThanOrEqual(12_000)
  expect(modules.filter((path) => path.includes('/react/'))).toEqual([])
})

test('the entry for vaults is at most 65 kB gzipped, without viem and React', async () => {
  const { bytes, modules } = await measure(useAll('vaults/index.ts'))
  console.log(`@countersign/sdk/vaults: ${bytes} bytes minified and gzipped, without viem and React`)
  expect(bytes).toBeLessThanOrEqual(65_000)
  expect(modules.some((path) => path.endsWith('vaults/useVaults.ts'))).toBe(true)
  const client = await measure(useAll('vaults/client.ts'))
  expect(client.modules.filter((path) => path.includes('/react/'))).toEqual([])
})
