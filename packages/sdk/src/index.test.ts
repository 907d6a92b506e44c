import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import * as client from './client/index.ts'
import * as sdk from './index.ts'

test('exports', () => {
  expect(Object.keys(sdk).sort()).toMatchInlineSnapshot(`
    [
      "ServiceClient",
      "ServiceError",
      "ServiceProvider",
      "useAttestation",
      "useService",
      "useSign",
      "useSignMessage",
      "useSignTypedData",
      "useWallet",
    ]
  `)
})

test('exports without React', () => {
  expect(Object.keys(client).sort()).toMatchInlineSnapshot(`
    [
      "ServiceClient",
      "ServiceError",
    ]
  `)
})

test('the client imports no React, and files with hooks say that they are for the browser', async () => {
  const src = import.meta.dirname
  for await (const path of glob('client/**/*.ts', { cwd: src })) {
    expect(await readFile(join(src, path), 'utf8'), path).not.toMatch(/from 'react|\.\.\/react/)
  }
  const files: string[] = []
  for await (const path of glob('react/*.{ts,tsx}', { cwd: src })) if (!path.includes('.test.')) files.push(path)
  expect(files).toHaveLength(9)
  for (const path of files) expect(await readFile(join(src, path), 'utf8'), path).toMatch(/^'use client'\n/)
})
