import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { copyExample } from './copyExample.ts'

test('a copy has the sources with their new places, and nothing that was installed or built', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-copy-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const [from, to] = [join(folder, 'from'), join(folder, 'to')]
  for (const path of ['src', 'node_modules/x', 'dist']) await mkdir(join(from, path), { recursive: true })
  await writeFile(join(from, 'src/app.ts'), "get('http://a:1/x', 'http://a:1')")
  for (const path of ['node_modules/x/index.js', 'dist/app.js']) await writeFile(join(from, path), 'old')
  await copyExample(from, { to, replaced: { 'http://a:1': 'http://b:2' } })
  expect(await readdir(to)).toEqual(['src'])
  expect(await readFile(join(to, 'src/app.ts'), 'utf8')).toBe("get('http://b:2/x', 'http://b:2')")
  expect(await readFile(join(from, 'src/app.ts'), 'utf8')).toContain('http://a:1/x')
})
