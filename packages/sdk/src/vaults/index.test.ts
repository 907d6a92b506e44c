import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import * as client from './client.ts'
import * as vaults from './index.ts'

test('exports of @countersign/sdk/vaults/client', () => {
  expect(Object.keys(client).toSorted()).toMatchInlineSnapshot(`
    [
      "approve",
      "attestVault",
      "attestWallet",
      "createPasskey",
      "createVault",
      "isVaultError",
      "listVaults",
      "parsePrepared",
      "prepare",
      "sendPrepared",
      "signAndSend",
      "signPrepared",
      "toPolicyFile",
      "toVaultClient",
    ]
  `)
})

test('@countersign/sdk/vaults has the hook beside all of them', () => {
  expect(Object.keys(vaults).toSorted()).toEqual([...Object.keys(client), 'useVaults'].toSorted())
})

test('only the file with the hook imports React, and says that it is for the browser', async () => {
  for await (const name of glob('*.ts', { cwd: import.meta.dirname })) {
    if (/\.(test|fake)\./.test(name) || name === 'index.ts') continue
    const source = await readFile(join(import.meta.dirname, name), 'utf8')
    const [hasReact, isMarked] = [/from 'react'|\.\.\/react/.test(source), source.startsWith("'use client'\n")]
    expect([name, hasReact, isMarked]).toEqual([name, name === 'useVaults.ts', name === 'useVaults.ts'])
  }
})
