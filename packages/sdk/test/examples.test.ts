import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')

test('the quick start is the app of examples/vite', () => {
  const [, section = ''] = read('../../../docs/build/sdk.md').split(/^## Quick start$/m)
  expect(/^```tsx\n(.*?)^```$/ms.exec(section)?.[1]).toBe(read('../../../examples/vite/src/App.tsx'))
})

test('the reference names every function that is exported', async () => {
  const reference = read('../../../docs/build/sdk.md')
  const modules = await Promise.all([
    import('../src/index.ts'),
    import('../src/agent/index.ts'),
    import('../src/viem/toServiceAccount.ts'),
    import('../src/eip1193/index.ts'),
    import('../src/wagmi/serviceConnector.ts'),
    import('../src/query/queryOptions.ts'),
    import('../src/vaults/index.ts'),
    import('../src/testing/index.ts'),
  ])
  const names = modules.flatMap((module) => Object.keys(module))
  expect(names.length).toBeGreaterThan(15)
  expect(names.filter((name) => !reference.includes(name))).toEqual([])
})
