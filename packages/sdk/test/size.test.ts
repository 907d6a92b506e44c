import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build, defaultClientConditions } from 'vite'
import { expect, test } from 'vitest'

/** What an app's build would add to it, minified and gzipped, without viem and React. */
async function measure(entry: string): Promise<{ bytes: number; modules: string[] }> {
  const output = await build({
    configFile: false,
    logLevel: 'silent',
    resolve: { conditions: ['source', ...defaultClientConditions] },
    build: {
      write: false,
      minify: true,
      lib: { entry: fileURLToPath(new URL(`../src/${entry}`, import.meta.url)), formats: ['es'] },
      rolldownOptions: { external: [/^viem(\/|$)/, /^react(\/|$)/] },
    },
  })
  const chunks = (Array.isArray(output) ? output : [output]).flatMap((one) => ('output' in one ? one.output : []))
  const code = chunks.map((chunk) => (chunk.type === 'chunk' ? chunk.code : '')).join('')
  const modules = chunks.flatMap((chunk) => (chunk.type === 'chunk' ? Object.keys(chunk.modules) : []))
  return { bytes: gzipSync(code).length, modules }
}

test('the main entry is at most 8 kB gzipped without viem and React', async () => {
  const { bytes, modules } = await measure('index.ts')
  console.log(`@countersign/sdk: ${bytes} bytes minified and gzipped, without viem and React`)
  expect(bytes).toBeLessThanOrEqual(8_000)
  // The client, the hooks and the few words of the protocol they share; no cryptography of ours.
  expect(modules.some((path) => path.endsWith('react/useSign.ts'))).toBe(true)
  expect(modules.filter((path) => /@noble|canonicalize/.test(path))).toEqual([])
})

test('the client without React is smaller, and brings no React', async () => {
  const { bytes, modules } = await measure('client/index.ts')
  console.log(`@countersign/sdk/client: ${bytes} bytes minified and gzipped, without viem`)
  expect(bytes).toBeLessThanOrEqual(6_500)
  expect(modules.filter((path) => path.includes('/react/'))).toEqual([])
})
