import { connect } from 'node:net'
import { createPublicClient, createWalletClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type LocalChain, type StartChainOptions, startChain } from './chain.ts'

/** PUSH0 PUSH0 REVERT, with deployment code that copies it from its end. */
const REVERTING = '0x6003600a5f3960035ff35f5ffd'

async function start(options?: StartChainOptions): Promise<LocalChain> {
  const chain = await startChain(options)
  onTestFinished(() => chain.stop())
  return chain
}

const readerOf = ({ url }: LocalChain) => createPublicClient({ transport: http(url, { retryCount: 0 }), cacheTime: 0 })

function senderOf({ url, accounts }: LocalChain, index = 0) {
  const account = accounts[index]
  if (!account) throw new Error(`no account ${index}`)
  return createWalletClient({ account: privateKeyToAccount(account.privateKey), transport: http(url) })
}

const post = ({ url }: LocalChain, body: string) => fetch(url, { method: 'POST', body })

test('mines a transaction that reverts, and returns an error for such a call', async () => {
  const chain = await start()
  const reader = readerOf(chain)
  const created = await senderOf(chain).deployContract({ chain: null, abi: [], bytecode: REVERTING })
  const { contractAddress: to } = await reader.getTransactionReceipt({ hash: created })
  if (!to) throw new Error('not deployed')
  expect(await reader.getCode({ address: to })).toBe('0x5f5ffd')
  const hash = await senderOf(chain).sendTransaction({ chain: null, to, gas: 100_000n })
  expect(await reader.getTransactionReceipt({ hash })).toMatchObject({ status: 'reverted' })
  await expect(reader.call({ to })).rejects.toThrow('reverted')
})

test('stop frees the port despite connected clients, and a restart begins a new chain', async () => {
  const first = await start()
  const port = Number(new URL(first.url).port)
  await first.mine(2)
  const client = connect(port, '127.0.0.1')
  await new Promise<void>((resolve) => client.once('connect', resolve))
  const cut = new Promise((resolve) => client.once('close', resolve))
  client.on('error', () => {})
  await first.stop()
  await cut
  await expect(post(first, '{}')).rejects.toThrow()
  const second = await start({ port })
  expect(second.url).toBe(first.url)
  expect(await readerOf(second).getBlockNumber()).toBe(0n)
})

test('startChain rejects when the port is taken', async () => {
  const { url } = await start()
  await expect(startChain({ port: Number(new URL(url).port) })).rejects.toMatchObject({ code: 'EADDRINUSE' })
})

test('wrap can call the node first and answer in its place', async () => {
  const heights: unknown[] = []
  const chain = await start({
    async wrap(node, accounts) {
      await node('evm_mine', [])
      heights.push(await node('eth_blockNumber', []), accounts.length)
      return async (method, params) => {
        if (method === 'evm_mine') throw Object.assign(new Error('not supported'), { code: -32004 })
        return node(method, params)
      }
    },
  })
  expect(heights).toEqual(['0x1', 10])
  const response = await post(chain, '[{"id":1,"method":"evm_mine"},{"id":2,"method":"eth_blockNumber"}]')
  expect(await response.json()).toEqual([
    { jsonrpc: '2.0', id: 1, error: { code: -32004, message: 'not supported' } },
    { jsonrpc: '2.0', id: 2, result: '0x1' },
  ])
})

test('routes answer requests to other paths', async () => {
  const chain = await start({ routes: { '/echo': async (body) => ({ status: 418, body: { body } }) } })
  const response = await fetch(`${chain.url}/echo`, { method: 'POST', body: 'hello' })
  expect([response.status, await response.json()]).toEqual([418, { body: 'hello' }])
  expect((await fetch(`${chain.url}/echo`)).status).toBe(405)
  const other = await fetch(`${chain.url}/constructor`, { method: 'POST', body: '{"id":1,"method":"eth_chainId"}' })
  expect(await other.json()).toMatchObject({ result: '0x7a69' })
})

test('blocks follow the clock, even if the node took long to load', async () => {
  const startedAt = Date.now()
  vi.useFakeTimers({ toFake: ['Date'], now: startedAt - 60_000 })
  onTestFinished(() => void vi.useRealTimers())
  const chain = await start({
    // Called once the node is ready.
    async wrap(node) {
      vi.useRealTimers()
      return node
    },
  })
  await chain.mine()
  const { timestamp } = await readerOf(chain).getBlock()
  expect(Number(timestamp)).toBeGreaterThanOrEqual(Math.floor(startedAt / 1000))
})
