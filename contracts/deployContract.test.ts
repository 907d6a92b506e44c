import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { findFreePorts, type LocalChain, startChain } from '@countersign/testing'
import { createPublicClient, encodeAbiParameters, encodeFunctionData, getContract, http } from 'viem'
import { generatePrivateKey } from 'viem/accounts'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { serviceAttestations } from './abi.ts'
import { DeployError, type DeployParameters, deployServiceAttestations } from './deployContract.ts'

let chain: LocalChain

beforeAll(async () => {
  chain = await startChain({ chainId: 4242 })
})

afterAll(() => chain.stop())

function accountOf(index: number) {
  const account = chain.accounts[index]
  if (!account) throw new Error(`no account ${index}`)
  return account
}

function toParameters(changes: Partial<DeployParameters> = {}): DeployParameters {
  return {
    rpcUrl: chain.url,
    privateKey: accountOf(0).privateKey,
    owner: accountOf(1).address,
    publisher: accountOf(2).address,
    pollingIntervalMs: 20,
    timeoutMs: 10_000,
    ...changes,
  }
}

async function failureOf(changes: Partial<DeployParameters>): Promise<string> {
  const parameters = toParameters(changes)
  const error = await deployServiceAttestations(parameters).then(
    () => undefined,
    (cause: unknown) => cause,
  )
  if (!(error instanceof DeployError)) throw new Error('no DeployError', { cause: error })
  // A cause would contain what the message omits.
  expect(error.cause).toBeUndefined()
  expect(error.message).not.toContain(parameters.privateKey.slice(2))
  return error.message
}

type Answer = { result?: unknown; error?: unknown }

/** The chain, with some responses changed. */
async function startLiar(change: (method: string, answer: Answer, params: unknown[]) => Answer): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString()
    const answer = await fetch(chain.url, { method: 'POST', body })
    const { method, params = [] } = JSON.parse(body)
    response.end(JSON.stringify(change(method, (await answer.json()) as Answer, params)))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/secret-token`
}

test('deploys the contract and returns its address', async () => {
  const deployment = await deployServiceAttestations(toParameters({ chainId: 4242 }))
  const client = createPublicClient({ transport: http(chain.url) })
  const receipt = await client.getTransactionReceipt({ hash: deployment.transactionHash })
  expect(deployment).toEqual({
    address: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
    transactionHash: receipt.transactionHash,
    blockNumber: receipt.blockNumber,
    chainId: 4242,
  })
  expect(await client.getCode({ address: deployment.address })).toBe(serviceAttestations.deployedBytecode)
  const contract = getContract({ address: deployment.address, abi: serviceAttestations.abi, client })
  expect(await contract.read.owner()).toBe(accountOf(1).address)
  expect(await contract.read.publisher()).toBe(accountOf(2).address)
})

test('rejects a node of another chain before sending', async () => {
  const client = createPublicClient({ transport: http(chain.url), cacheTime: 0 })
  const before = await client.getBlockNumber()
  expect(await failureOf({ chainId: 1 })).toBe('invalid node: expected chain 1, got 4242')
  expect(await client.getBlockNumber()).toBe(before)
})

test.each(['owner', 'publisher'])('the contract rejects the zero address as %s', async (role) => {
  const message = await failureOf({ [role]: '0x0000000000000000000000000000000000000000' })
  expect(message).toMatch(/^the deployment was not sent: /)
})

test('an account without ether', async () => {
  expect(await failureOf({ privateKey: generatePrivateKey() })).toMatch(/^the deployment was not sent: /)
})

test('an unreachable node, without quoting its URL', async () => {
  const [port] = await findFreePorts(1)
  const message = await failureOf({ rpcUrl: `http://127.0.0.1:${port}/v2/secret-token?key=other-secret` })
  expect(message).toMatch(/^the node did not answer: /)
  expect(message).not.toContain('secret')
})

test('a node whose error quotes the URL', async () => {
  const rpcUrl = await startLiar(() => ({ error: { code: -32000, message: 'no project secret-token' } }))
  const message = await failureOf({ rpcUrl })
  expect(message).toMatch(/no project …$/)
})

test('other code on the chain than was compiled', async () => {
  const code = serviceAttestations.deployedBytecode
  const wrong = `${code.slice(0, -1)}${code.endsWith('0') ? '1' : '0'}`
  const rpcUrl = await startLiar((method, answer) => (method === 'eth_getCode' ? { ...answer, result: wrong } : answer))
  expect(await failureOf({ rpcUrl })).toMatch(/is not the compiled contract$/)
})

test('no code on the chain within the time limit', async () => {
  // Only the wait for the code takes time here.
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const rpcUrl = await startLiar((method, answer) => {
    if (method !== 'eth_getCode') return answer
    vi.advanceTimersByTime(6_000)
    return { ...answer, result: '0x' }
  })
  expect(await failureOf({ rpcUrl })).toMatch(/^no code at 0x/)
})

test('retries a node that is a block behind', async () => {
  let asked = 0
  const rpcUrl = await startLiar((method, answer) =>
    method === 'eth_getCode' && ++asked < 3 ? { ...answer, result: '0x' } : answer,
  )
  await deployServiceAttestations(toParameters({ rpcUrl }))
  expect(asked).toBe(3)
})

test.each(['owner', 'publisher'] as const)('another %s on the chain than requested', async (role) => {
  const data = encodeFunctionData({ abi: serviceAttestations.abi, functionName: role })
  const result = encodeAbiParameters([{ type: 'address' }], [accountOf(5).address])
  const rpcUrl = await startLiar((method, answer, [call]) =>
    method === 'eth_call' && (call as { data: string }).data === data ? { ...answer, result } : answer,
  )
  expect(await failureOf({ rpcUrl })).toMatch(new RegExp(`^the ${role} of 0x\\w+ is ${accountOf(5).address}, not 0x`))
})

test('a deployment that reverts in its block', async () => {
  const rpcUrl = await startLiar((method, answer) =>
    method === 'eth_getTransactionReceipt' && answer.result
      ? { ...answer, result: { ...answer.result, status: '0x0' } }
      : answer,
  )
  expect(await failureOf({ rpcUrl })).toMatch(/^0x[0-9a-f]{64} reverted$/)
})

test('names a deployment that is not mined, so that its sender can find it', async () => {
  const slow = await startChain({ mining: 'manual' })
  try {
    const message = await failureOf({ rpcUrl: slow.url, timeoutMs: 200 })
    expect(message).toMatch(/^0x[0-9a-f]{64} was sent but is not confirmed: /)
  } finally {
    await slow.stop()
  }
})
