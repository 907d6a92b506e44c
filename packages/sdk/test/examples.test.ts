import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const here = fileURLToPath(new URL('.', import.meta.url))

/** The code of each section that has some; the blocks of one section belong together. */
function readExamples(path: string): { title: string; code: string }[] {
  const text = readFileSync(new URL(path, import.meta.url), 'utf8')
  return text
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      title: section.slice(0, section.indexOf('\n')),
      code: [...section.matchAll(/^```tsx?\n(.*?)^```$/gms)].map(([, block]) => block).join('\n'),
    }))
    .filter(({ code }) => code !== '')
}

test('the examples of README and reference compile as they stand', () => {
  const examples = [...readExamples('../README.md'), ...readExamples('../../../docs/sdk.md')]
  expect(examples.length).toBeGreaterThanOrEqual(14)
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

test('five minutes of the reference is the app of examples/vite, letter by letter', () => {
  const [five] = readExamples('../../../docs/sdk.md')
  expect(five?.title).toBe('Five minutes')
  expect(five?.code).toBe(readFileSync(new URL('../../../examples/vite/src/App.tsx', import.meta.url), 'utf8'))
})

test('the reference names every function that is exported', async () => {
  const reference = readFileSync(new URL('../../../docs/sdk.md', import.meta.url), 'utf8')
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
