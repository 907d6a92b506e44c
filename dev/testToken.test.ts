import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPublicClient, erc20Abi, http } from 'viem'
import { expect, onTestFinished, test } from 'vitest'
import { compileTestContract } from '../contracts/compileTestContract.ts'
import { startDevChain } from './chain.ts'
import { deployTestToken, TEST_TOKEN, TEST_TOKEN_BYTECODE } from './testToken.ts'

test('the bytecode matches the source', async () => {
  expect(await compileTestContract('TestToken')).toBe(TEST_TOKEN_BYTECODE)
})

test('is deployed once, at the expected address, and gives every account a balance', async () => {
  const stateDir = await mkdtemp(join(tmpdir(), 'countersign-dev-token-'))
  onTestFinished(() => rm(stateDir, { recursive: true, force: true }))
  const chain = await startDevChain({ port: 0, stateDir })
  onTestFinished(() => chain.stop())
  await deployTestToken(chain)
  const reader = createPublicClient({ transport: http(chain.url), cacheTime: 0 })
  const height = await reader.getBlockNumber()
  await deployTestToken(chain)
  expect(await reader.getBlockNumber()).toBe(height)
  const contract = { address: TEST_TOKEN.address, abi: erc20Abi }
  expect(await reader.readContract({ ...contract, functionName: 'symbol' })).toBe(TEST_TOKEN.symbol)
  expect(await reader.readContract({ ...contract, functionName: 'decimals' })).toBe(TEST_TOKEN.decimals)
  expect(await reader.readContract({ ...contract, functionName: 'name' })).toBe(TEST_TOKEN.name)
  const args = ['0x00000000000000000000000000000000000c0ffe'] as const
  expect(await reader.readContract({ ...contract, functionName: 'balanceOf', args })).toBe(100_000_000n)
})
