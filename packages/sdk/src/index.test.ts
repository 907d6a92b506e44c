import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import * as agent from './agent/index.ts'
import * as client from './client/index.ts'
import * as eip1193 from './eip1193/index.ts'
import * as sdk from './index.ts'
import * as query from './query/queryOptions.ts'
import * as testing from './testing/index.ts'
import * as vaultsClient from './vaults/client.ts'
import * as vaults from './vaults/index.ts'
import * as viem from './viem/toServiceAccount.ts'
import * as wagmi from './wagmi/serviceConnector.ts'
import * as webhooks from './webhooks/verifyWebhook.ts'

test('exports', () => {
  const entries = { sdk, agent, client, eip1193, query, testing, vaultsClient, viem, wagmi, webhooks }
  const names = Object.entries(entries).map(([name, entry]) => `${name}: ${Object.keys(entry).toSorted().join(' ')}`)
  expect(names).toMatchInlineSnapshot(`
    [
      "sdk: ServiceClient ServiceError ServiceProvider useAttestation useService useSign useSignMessage useSignTypedData useWallet",
      "agent: ServiceError createAgent createAgentKey",
      "client: ServiceClient ServiceError",
      "eip1193: Eip1193Error announceProvider createEip1193Provider",
      "query: meQueryOptions proofQueryOptions serviceKeys signAndSendMutationOptions transactionsInfiniteQueryOptions vaultsQueryOptions walletQueryOptions",
      "testing: createTestPasskeys createTestService",
      "vaultsClient: approve approveRevocation attestVault attestWallet createPasskey createVault getBudget isVaultError listVaults parsePrepared prepare revokeKey sendPrepared signAndSend signPrepared toPolicyFile toVaultClient",
      "viem: toServiceAccount",
      "wagmi: serviceConnector",
      "webhooks: ServiceError verifyWebhook",
    ]
  `)
})

test('@countersign/sdk/vaults has the hook and all of /vaults/client', () => {
  expect(Object.keys(vaults).toSorted()).toEqual([...Object.keys(vaultsClient), 'useVaults'].toSorted())
})

test('only files with hooks import React, and they have “use client”', async () => {
  for (const folder of ['client', 'react', 'vaults']) {
    for await (const name of glob('*.{ts,tsx}', { cwd: join(import.meta.dirname, folder) })) {
      if (/\.(test|fake)\./.test(name) || name === 'index.ts') continue
      const source = await readFile(join(import.meta.dirname, folder, name), 'utf8')
      const isHook = folder === 'react' || name === 'useVaults.ts'
      const [hasReact, isMarked] = [/from 'react|\.\.\/react/.test(source), source.startsWith("'use client'\n")]
      expect([name, hasReact, isMarked]).toEqual([name, isHook, isHook])
    }
  }
})
