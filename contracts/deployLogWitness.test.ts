import { hashOrigin } from '@countersign/log'
import {
  createPublicClient,
  createWalletClient,
  encodeAbiParameters,
  type Hex,
  http,
  keccak256,
  toFunctionSelector,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { logWitness } from './abi.ts'
import { DeployError, deployLogWitness, type LogWitnessParameters } from './deployContract.ts'
import { startContract } from './startContract.ts'

const ORIGINS = ['log.example/a', 'log.example/ü']
const { abi } = logWitness

let started: Awaited<ReturnType<typeof startWitness>>

beforeAll(async () => {
  started = await startWitness()
})

afterAll(() => started.chain.stop())

function startWitness() {
  return startContract({ origins: ORIGINS })
}

function accountOf(index: number) {
  const account = started.chain.accounts[index]
  if (!account) throw new Error(`no account ${index}`)
  return account
}

function toParameters(changes: Partial<LogWitnessParameters> = {}): LogWitnessParameters {
  return {
    rpcUrl: started.chain.url,
    privateKey: accountOf(0).privateKey,
    publisher: accountOf(1).address,
    origins: ORIGINS,
    address: started.logWitness,
    pollingIntervalMs: 20,
    timeoutMs: 10_000,
    ...changes,
  }
}

async function failureOf(changes: Partial<LogWitnessParameters>): Promise<string> {
  const error = await deployLogWitness(toParameters(changes)).then(
    () => undefined,
    (cause: unknown) => cause,
  )
  if (!(error instanceof DeployError)) throw new Error('no DeployError', { cause: error })
  expect(error.cause).toBeUndefined()
  return error.message
}

const createReader = () => createPublicClient({ transport: http(started.chain.url), cacheTime: 0 })

function read(functionName: 'owner' | 'publisher', id: Hex) {
  return createReader().readContract({ address: started.logWitness, abi, functionName, args: [id] })
}

/** The id by its definition. */
function toId(owner: Hex, origin: string): Hex {
  const parameters = [{ type: 'address' }, { type: 'bytes32' }] as const
  return keccak256(encodeAbiParameters(parameters, [owner, `0x${hashOrigin(origin)}`]))
}

test('startContract starts both contracts with the logs of the first account', async () => {
  const client = createReader()
  expect(await client.getCode({ address: started.logWitness })).toBe(logWitness.deployedBytecode)
  expect(started.address).not.toBe(started.logWitness)
  expect(started.logs).toEqual(ORIGINS.map((origin) => ({ origin, id: toId(accountOf(0).address, origin) })))
  for (const { id } of started.logs) {
    expect(await read('owner', id)).toBe(accountOf(0).address)
    expect(await read('publisher', id)).toBe(accountOf(1).address)
  }
})

test('deploys a contract and returns its address, block and logs', async () => {
  const { address: _, ...parameters } = toParameters()
  const deployment = await deployLogWitness(parameters)
  const client = createReader()
  expect(deployment).toEqual({
    address: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
    // Then come the registrations.
    blockNumber: (await client.getBlockNumber()) - 2n,
    chainId: 31337,
    logs: started.logs,
  })
  expect(deployment.address).not.toBe(started.logWitness)
  expect(await client.getCode({ address: deployment.address })).toBe(logWitness.deployedBytecode)
})

test('skips logs that the account has registered, and registers others', async () => {
  const before = await createReader().getBlockNumber()
  const { address, blockNumber, logs } = await deployLogWitness(
    toParameters({ origins: [...ORIGINS, 'log.example/c'], chainId: 31337 }),
  )
  expect(await createReader().getBlockNumber()).toBe(before + 1n)
  expect({ address, blockNumber }).toEqual({ address: started.logWitness, blockNumber: before })
  expect(logs.slice(0, 2)).toEqual(started.logs)
  expect(await read('publisher', toId(accountOf(0).address, 'log.example/c'))).toBe(accountOf(1).address)
})

test('another account registers the same origins under its own ids', async () => {
  const { logs } = await deployLogWitness(toParameters({ privateKey: accountOf(2).privateKey }))
  expect(logs.map(({ id }) => id)).toEqual(ORIGINS.map((origin) => toId(accountOf(2).address, origin)))
  for (const { id } of logs) expect(await read('owner', id)).toBe(accountOf(2).address)
})

test('a handed-over log keeps its id', async () => {
  const origin = 'log.example/handed-over'
  const { logs } = await deployLogWitness(toParameters({ origins: [origin] }))
  const [log] = logs
  if (!log) throw new Error('no log')
  for (const [index, functionName] of [
    [0, 'proposeOwner'],
    [3, 'acceptOwnership'],
  ] as const) {
    const account = privateKeyToAccount(accountOf(index).privateKey)
    const wallet = createWalletClient({ account, transport: http(started.chain.url) })
    const contract = { address: started.logWitness, abi, chain: null }
    if (functionName === 'acceptOwnership') await wallet.writeContract({ ...contract, functionName, args: [log.id] })
    else await wallet.writeContract({ ...contract, functionName, args: [log.id, accountOf(3).address] })
  }
  expect(await read('owner', log.id)).toBe(accountOf(3).address)
  expect((await deployLogWitness(toParameters({ origins: [origin] }))).logs).toEqual([log])
})

test('rejects a log of another publisher, and names the log', async () => {
  const message = await failureOf({ publisher: accountOf(4).address })
  expect(message).toBe(
    `could not register log.example/a at ${started.logWitness}: ` +
      `the publisher of its log ${started.logs[0]?.id} is ${accountOf(1).address}, not ${accountOf(4).address}`,
  )
})

test('the contract rejects the zero address as publisher', async () => {
  const changes = { publisher: '0x0000000000000000000000000000000000000000', origins: ['log.example/zero'] } as const
  expect(await failureOf(changes)).toMatch(
    new RegExp(`^could not register log\\.example/zero at 0x\\w{40}: .*${toFunctionSelector('ZeroPublisher()')}`),
  )
})

test('names the contract if the account cannot pay for a registration', async () => {
  const message = await failureOf({ privateKey: `0x${'1f'.repeat(32)}` })
  expect(message).toMatch(new RegExp(`^could not register log\\.example/a at ${started.logWitness}: `))
})

test('rejects an address with other code, and one without code at once', async () => {
  expect(await failureOf({ address: started.address })).toBe(
    `the code at ${started.address} is not the compiled contract`,
  )
  const address = accountOf(5).address
  expect(await failureOf({ address, timeoutMs: 3_600_000 })).toBe(`no code at ${address}`)
})

test('rejects a node of another chain before sending', async () => {
  const before = await createReader().getBlockNumber()
  expect(await failureOf({ chainId: 1 })).toBe('invalid node: expected chain 1, got 31337')
  expect(await createReader().getBlockNumber()).toBe(before)
})
