import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const here = fileURLToPath(new URL('.', import.meta.url))

/** The samples of a page with the heading above each. A sample that is not a complete module is marked `fragment`. */
function readExamples(path: string): { title: string; code: string }[] {
  const text = readFileSync(new URL(path, import.meta.url), 'utf8')
  return text.split(/^##+ /m).flatMap((section) => {
    const title = section.slice(0, section.indexOf('\n'))
    return [...section.matchAll(/^```tsx?\n(.*?)^```$/gms)].map(([, code = '']) => ({ title, code }))
  })
}

test('the examples of the pages for app developers compile', () => {
  const pages = ['sdk', 'testing-your-app', 'vaults', 'webhooks'].map((page) => `../../../docs/build/${page}.md`)
  const examples = [...pages, '../README.md'].flatMap(readExamples)
  expect(examples.length).toBeGreaterThanOrEqual(8)
  // Within the package, where its own name and its peers resolve.
  const folder = mkdtempSync(`${here}examples-`)
  try {
    for (const [index, { code }] of examples.entries()) writeFileSync(`${folder}/${index}.tsx`, code)
    const config = {
      extends: '../../../../tsconfig.tests.json',
      compilerOptions: { noEmit: true, noUnusedLocals: false },
      include: ['*.tsx'],
    }
    writeFileSync(`${folder}/tsconfig.json`, JSON.stringify(config))
    const { stdout, status } = spawnSync('tsc', ['-p', folder], { encoding: 'utf8' })
    const faults = stdout.replaceAll(/^.*?(\d+)\.tsx/gm, (_, index) => examples[Number(index)]?.title ?? '')
    expect(faults).toBe('')
    expect(status).toBe(0)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('the quick start is the app of examples/vite', () => {
  const [first] = readExamples('../../../docs/build/sdk.md')
  expect(first?.title).toBe('Quick start')
  expect(first?.code).toBe(readFileSync(new URL('../../../examples/vite/src/App.tsx', import.meta.url), 'utf8'))
})

test('the reference names every function that is exported', async () => {
  const reference = readFileSync(new URL('../../../docs/build/sdk.md', import.meta.url), 'utf8')
  const modules = await Promise.all([
    import('../src/index.ts'),
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
