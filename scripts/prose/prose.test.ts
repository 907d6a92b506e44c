import { describe, expect, test } from 'vitest'
import { lintFile } from './lintProse.ts'
import { rules } from './rules.ts'

const find = async (path: string, content: string) =>
  (await lintFile(path, content)).map(({ line, phrase }) => `${line}: ${phrase}`)

const samples = new Map([
  ['clause as subject', 'Who waits for it gets an error.'],
  ['whoever', 'The key belongs to whoever has the file.'],
  ['told', 'The caller is told.'],
  ['nobody', 'Nobody waits for the log.'],
  ['alone', 'The limit counts transactions alone.'],
  ['mend', 'The next release mends it.'],
  ['let go', 'The job is given up after a day.'],
  ['looked for', 'The proof is looked for each minute.'],
  ['judge', 'The verifier judges each quote.'],
  ['beside', 'The signature is beside the digest.'],
  ['stands in', 'The hash stands in the quote.'],
  ['anew', 'The worker starts anew.'],
  ['for ever', 'The log keeps it for ever.'],
  ['of its own', 'The worker runs in a process of its own.'],
  ['is one', 'The key is not one.'],
  ['is made', 'A wallet is being made.'],
  ['house', 'A rule for the house.'],
  ['stranger', 'A stranger can check it.'],
  ['on its way', 'A payment is on its way.'],
])

describe('rules', () => {
  test.each(rules)('$name is found on its line, with what to write instead', async ({ name, instead }) => {
    const faults = await lintFile('page.md', `# Title\n\nA plain line.\n\n- ${samples.get(name)}\n`)
    expect(faults).toMatchObject([{ path: 'page.md', line: 5, instead }])
  })

  test.each([
    'What is a proof?',
    'What can lock funds permanently',
    'The checkpoint, if there is one, has this origin.',
    'Compare it with your own build, or with a build of your own team.',
    'A list is made of entries.',
  ])('%s is allowed', async (sentence) => {
    expect(await find('page.md', `${sentence}\n`)).toEqual([])
  })

  test('each cell of a table and each item of a list is a sentence', async () => {
    const page =
      '| Field | Meaning |\n|---|---|\n| key | What it holds is secret. |\n\n1. One\n2. Whose it is, it says.\n'
    expect(await find('page.md', page)).toEqual(['3: What it holds is secret.', '6: Whose it is, it says.'])
  })
})

describe('Markdown', () => {
  test('finds misspelt words, repeated words and wrong articles', async () => {
    const page = 'The enclve signs.\nThe the log grows.\nA error and an key.\n'
    expect(await find('page.md', page)).toEqual(['1: enclve', '2: The the', '3: A', '3: an'])
  })

  test('ignores code, link targets, comments and names', async () => {
    const page = [
      '---\nname: mended\n---\n<!-- whoever -->\n',
      '`nobody` and ``mend `it` ``, [a page](nobody/mended.md), https://mended.example/anew, SEV_SNP, txMetdata and x64.\n',
      '```ts\n// Whoever is told.\n```\n',
      '[D1]: mended.md\n',
    ].join('\n')
    expect(await find('page.md', page)).toEqual([])
  })
})

describe('modules', () => {
  test('finds phrases in strings, templates and JSX text, and ignores code', async () => {
    const code = [
      "import { mend } from './nobody mended anew.ts'",
      '// Nobody reads comments here.',
      "const mended = 'nobody'",
      "const title = 'The caller is told'",
      'const text = `It was\\n<a class="anew">mended</a> \\`anew\\``',
      'const page = <p className="mend anew">\n  Nobody waits.\n</p>',
    ].join('\n')
    expect(await find('page.tsx', code)).toEqual(['4: is told', '6: mended', '7: Nobody'])
  })
})
