import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

/** Names that the short samples of a page use without declaring them. */
const PREAMBLES: Readonly<Record<string, string>> = {
  'packages/attestation/README.md': 'declare const quote: Uint8Array, reportData: Uint8Array, json: string',
  'packages/evidence/README.md': 'declare const reportData: Uint8Array',
  'packages/log/README.md': `
    import type { WitnessPolicy } from '@countersign/log'
    declare const keyId: string, statementLeaf: string, timeMs: number, proof: string, vkey: string
    declare const witnesses: WitnessPolicy['witnesses'], quorum: number`,
  'packages/policy/README.md': `
    import type { TxMetadata } from '@countersign/protocol'
    import type { Policy } from '@countersign/policy'
    declare const rules: Policy['rules'], txMetadata: TxMetadata`,
  'packages/protocol/README.md': `
    import type { Statement } from '@countersign/protocol'
    declare const txMetadata: unknown, statement: Statement
    declare const leafIndex: number, treeSize: number, path: Uint8Array[]`,
  'packages/receipt/README.md': `
    import type { CheckReceiptOptions } from '@countersign/receipt'
    declare const car: Uint8Array, roots: CheckReceiptOptions['roots'], anchors: CheckReceiptOptions['anchors']`,
  'packages/verify/README.md': 'declare const json: string',
}

/** So that the lines of a sample stay the lines of its page. */
const toOneLine = (code: string) => code.trim().replace(/\n\s*/g, '; ')

type Sample = { page: string; line: number; language: string; code: string }

/** The code blocks of a page. A sample that is not a complete module is marked `fragment` and is not checked. */
function readSamples(page: string): Sample[] {
  const markdown = readFileSync(join(ROOT, page), 'utf8')
  return [...markdown.matchAll(/^```(tsx?|json)\n(.*?)^```$/gms)].map(({ 1: language = '', 2: code = '', index }) => {
    return { page, line: markdown.slice(0, index).split('\n').length, language, code }
  })
}

const samples = globSync(['docs/**/*.md', 'packages/*/{,spec/}*.md', 'README.md'], {
  cwd: ROOT,
  exclude: (path) => ['node_modules', 'dist'].some((name) => path.endsWith(name)),
})
  .toSorted()
  .flatMap(readSamples)

test('the TypeScript samples compile', () => {
  const modules = samples.filter(({ language }) => language !== 'json')
  expect(modules.length).toBeGreaterThanOrEqual(18)
  const folder = mkdtempSync(join(import.meta.dirname, 'samples-'))
  try {
    for (const [index, { page, code }] of modules.entries())
      writeFileSync(join(folder, `${index}.tsx`), `${toOneLine(PREAMBLES[page] ?? '')}\n${code}`)
    const compilerOptions = { noUnusedLocals: false }
    const config = { extends: '../../tsconfig.tests.json', compilerOptions, include: ['*.tsx'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const { stdout, status } = spawnSync('tsc', ['-p', folder], { encoding: 'utf8' })
    const faults = stdout.replaceAll(/^.*?(\d+)\.tsx\((\d+),\d+\)/gm, (_, index, line) => {
      const sample = modules[Number(index)]
      return `${sample?.page}:${(sample?.line ?? 0) + Number(line) - 1}`
    })
    expect({ faults, status }).toEqual({ faults: '', status: 0 })
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test.each(samples.filter(({ language }) => language === 'json'))('the sample at $page:$line is JSON', ({ code }) => {
  // Some samples are members of a larger object.
  const text = /^\s*"/.test(code) ? `{${code}}` : code
  expect(() => JSON.parse(text)).not.toThrow()
})
