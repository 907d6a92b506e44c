import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'vite'
import { expect, test } from 'vitest'

test('the first page, signed in and with all that it loads, is under 200 kB of gzipped script', async () => {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const mode = { mode: 'production', logLevel: 'silent' } as const
  const output = await build({
    root,
    ...mode,
    build: { write: false },
    define: { 'process.env.NODE_ENV': '"production"' },
  })
  const chunks = (Array.isArray(output) ? output : [output])
    .flatMap((one) => ('output' in one ? one.output : []))
    .flatMap((one) => (one.type === 'chunk' ? [one] : []))
  const isOther = (name: string) => /\/src\/(proof|verify|verification)\//.test(name)
  const first = chunks.filter(({ moduleIds }) => !moduleIds.some(isOther))
  expect(first.some(({ moduleIds }) => moduleIds.some((name) => name.endsWith('src/wallet/WalletPage.tsx')))).toBe(true)
  expect(first.length).toBeLessThan(chunks.length)
  const bytes = first.reduce((sum, { code }) => sum + gzipSync(code).length, 0)
  console.log(`the web app's first page: ${bytes} bytes of gzipped script`)
  expect(bytes).toBeLessThan(200_000)
})
