import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'vite'
import { expect, onTestFinished, test, vi } from 'vitest'

test('the first page, signed in, loads less than 210 kB of gzipped script', async () => {
  // Vitest's own value creates a development build, whose size depends on the checkout's path.
  vi.stubEnv('NODE_ENV', 'production')
  onTestFinished(() => void vi.unstubAllEnvs())
  const root = fileURLToPath(new URL('..', import.meta.url))
  const mode = { mode: 'production', logLevel: 'silent' } as const
  const output = await build({ root, ...mode, build: { write: false } })
  const chunks = (Array.isArray(output) ? output : [output])
    .flatMap((one) => ('output' in one ? one.output : []))
    .flatMap((one) => (one.type === 'chunk' ? [one] : []))
  // Everything that loads without opening a verify, sign or vault page, pressing "Receive" or "Check all transactions", or checking an address for the first time.
  const isOther = (id: string | null) =>
    /\/src\/(proof\/ProofPage|verifyPage\/VerifyPage|sign\/SignPage|vaults\/VaultPages|ui\/QrCode|wallet\/AddressCheck|monitor\/MonitorResult)\.tsx$/.test(
      id ?? '',
    )
  const loaded = new Set<string>()
  const load = (fileName: string) => {
    const chunk = chunks.find((one) => one.fileName === fileName)
    if (chunk === undefined || loaded.has(fileName) || isOther(chunk.facadeModuleId)) return
    loaded.add(fileName)
    for (const name of [...chunk.imports, ...chunk.dynamicImports]) load(name)
  }
  for (const { isEntry, fileName } of chunks) if (isEntry) load(fileName)
  const first = chunks.filter(({ fileName }) => loaded.has(fileName))
  expect(chunks.filter(({ facadeModuleId }) => isOther(facadeModuleId))).toHaveLength(7)
  expect(first.flatMap(({ moduleIds }) => moduleIds).filter((id) => /\/packages\/verify\//.test(id))).toEqual([])
  expect(first.some(({ moduleIds }) => moduleIds.some((name) => name.endsWith('src/wallet/WalletPage.tsx')))).toBe(true)
  expect(first.length).toBeLessThan(chunks.length)
  const bytes = first.reduce((sum, { code }) => sum + gzipSync(code).length, 0)
  const raw = first.reduce((sum, { code }) => sum + Buffer.byteLength(code), 0)
  console.log(`the web app's first page: ${bytes} bytes of gzipped script, ${raw} unzipped`)
  expect(bytes).toBeLessThan(210_000)
})
