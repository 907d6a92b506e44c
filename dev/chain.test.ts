import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { hashOrigin } from '@countersign/log'
import { fromHex, toLogId } from '@countersign/protocol'
import { startChain } from '@countersign/testing'
import {
  type Address,
  createPublicClient,
  createWalletClient,
  type Hash,
  type Hex,
  http,
  keccak256,
  parseEther,
  parseGwei,
  zeroHash,
} from 'viem'
import { generatePrivateKey, mnemonicToAccount, privateKeyToAccount } from 'viem/accounts'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { logWitness as logWitnessContract, serviceAttestations } from '../contracts/abi.ts'
import { onSync } from '../packages/service/test/onSync.ts'
import { readPipeline } from '../services/coordinator/src/publish/config.ts'
import { type DevChain, type StartDevChainParameters, startDevChain, toChainEnv } from './chain.ts'
import { openChainJournal } from './chainJournal.ts'
import { createChainLedger } from './chainLedger.ts'
import { IMPLEMENTATION, IMPLEMENTATION_CODE } from './implementation.ts'
import { clearState } from './state.ts'

const STRANGER = '0x00000000000000000000000000000000000c0ffe'
const GENESIS_TIMESTAMP = Date.UTC(2025, 0, 1) / 1000
const MNEMONIC = 'test test test test test test test test test test test junk'
const deployer = mnemonicToAccount(MNEMONIC, { addressIndex: 0 })
/** Neither deploys nor funds. */
const developer = mnemonicToAccount(MNEMONIC, { addressIndex: 2 })

let stateDir: string
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'countersign-dev-chain-'))
})
afterEach(() => rm(stateDir, { recursive: true, force: true }))

async function start(parameters: Partial<StartDevChainParameters> = {}): Promise<DevChain> {
  const chain = await startDevChain({ port: 0, stateDir, ...parameters })
  onTestFinished(() => chain.stop())
  return chain
}

/** The error of a start that must fail. */
async function failureOf(parameters: Partial<StartDevChainParameters> = {}): Promise<string> {
  const error = await start(parameters).then(
    () => undefined,
    (cause: unknown) => cause,
  )
  if (!(error instanceof Error)) throw new Error('it started')
  return error.message
}

const journalPath = () => join(stateDir, 'chain', 'journal.jsonl')
const readJournal = async () => (await readFile(journalPath(), 'utf8')).split('\n').slice(0, -1)
const writeJournal = (lines: readonly string[]) => writeFile(journalPath(), lines.map((line) => `${line}\n`).join(''))

const readerOf = ({ url }: Pick<DevChain, 'url'>) =>
  createPublicClient({ transport: http(url, { retryCount: 0 }), cacheTime: 0 })

async function call({ url }: Pick<DevChain, 'url'>, method: string, ...params: unknown[]) {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify({ id: 1, method, params }) })
  return (await response.json()) as { result?: unknown; error?: { code: number; message: string } }
}

const post = ({ url }: DevChain, body: string) => fetch(`${url}/faucet`, { method: 'POST', body })

const contractOf = ({ contract: address }: DevChain) => ({ address, abi: serviceAttestations.abi })

async function publisherOf({ url, publisher }: DevChain) {
  const privateKey = (await readFile(publisher.privateKeyFile, 'utf8')).trim() as Hex
  return createWalletClient({ account: privateKeyToAccount(privateKey), transport: http(url) })
}

/** Publishes as the coordinator's publisher does. */
async function publish(chain: DevChain, txHash: Hash): Promise<Hash> {
  const args = [STRANGER, txHash, 'bafkreigh2akiscaildc'] as const
  return (await publisherOf(chain)).writeContract({ chain: null, ...contractOf(chain), functionName: 'publish', args })
}

const signTransfer = (nonce: number, chainId = 31337, account = developer) =>
  account.signTransaction({
    type: 'eip1559',
    chainId,
    nonce,
    to: STRANGER,
    value: 1n,
    gas: 21_000n,
    maxFeePerGas: parseGwei('10'),
    maxPriorityFeePerGas: 1n,
  })

/** The journal of a chain with one block, which differs from the local chain's first block. */
async function makeJournal({ raw, timestamp }: { raw: Hex | null; timestamp?: number }): Promise<string[]> {
  const chain = await startChain({ genesisTimestamp: GENESIS_TIMESTAMP })
  onTestFinished(() => chain.stop())
  if (timestamp !== undefined) await call(chain, 'evm_setNextBlockTimestamp', timestamp)
  await (raw === null ? call(chain, 'evm_mine') : call(chain, 'eth_sendRawTransaction', raw))
  const block = await readerOf(chain).getBlock({ blockNumber: 1n })
  const line = { number: 1, timestamp: Number(block.timestamp), hash: block.hash, raw }
  return [{ format: 'countersign-dev-chain/1', chainId: 31337 }, line].map((value) => JSON.stringify(value))
}

/** Continues the journal like the stack, but deploys nothing. */
async function sendFrom(account: typeof deployer, nonce: number) {
  const journal = await openChainJournal({ path: journalPath(), chainId: 31337 })
  const ledger = createChainLedger({ journal, path: journalPath(), chainId: 31337 })
  const chain = await startChain({
    genesisTimestamp: GENESIS_TIMESTAMP,
    async wrap(node) {
      await ledger.attach(node)
      return ledger.request
    },
  })
  await call(chain, 'eth_sendRawTransaction', await signTransfer(nonce, 31337, account))
  await ledger.end()
  await chain.stop()
  await journal.close()
}

/** Everything that a client can read from a chain. */
async function observe(chain: DevChain) {
  const reader = readerOf(chain)
  const height = await reader.getBlockNumber()
  const numbers = Array.from({ length: Number(height) + 1 }, (_, index) => BigInt(index))
  const blocks = await Promise.all(
    numbers.map((blockNumber) => reader.getBlock({ blockNumber, includeTransactions: true })),
  )
  const hashes = blocks.flatMap(({ transactions }) => transactions.map(({ hash }) => hash))
  const accounts: Address[] = [STRANGER, chain.publisher.address, developer.address]
  return {
    blocks,
    receipts: await Promise.all(hashes.map((hash) => reader.getTransactionReceipt({ hash }))),
    balances: await Promise.all(accounts.map((address) => reader.getBalance({ address }))),
    logs: await reader.getLogs({ address: chain.contract, fromBlock: 0n }),
    published: (
      await reader.getContractEvents({ ...contractOf(chain), eventName: 'AttestationPublished', fromBlock: 0n })
    ).map(({ transactionHash }) => transactionHash),
  }
}

describe('the local chain', () => {
  test('the first start deploys the contract for a funded publisher and returns the settings for a coordinator', async () => {
    const chain = await start()
    const reader = readerOf(chain)
    expect(await reader.getChainId()).toBe(31337)
    expect(await reader.readContract({ ...contractOf(chain), functionName: 'publisher' })).toBe(chain.publisher.address)
    expect(await reader.getBalance({ address: chain.publisher.address })).toBe(parseEther('100'))
    expect((await stat(chain.publisher.privateKeyFile)).mode & 0o777).toBe(0o600)

    const faults: string[] = []
    const read: string[] = []
    const privateKey = (await readFile(chain.publisher.privateKeyFile, 'utf8')).trim()
    const readKey = (path: string) => {
      read.push(path)
      return `${privateKey}\n`
    }
    const config = readPipeline(toChainEnv(chain), { readFile: readKey, mode: 'development' }, (fault) =>
      faults.push(fault),
    )
    expect([faults, read]).toEqual([[], [chain.publisher.privateKeyFile]])
    expect(config).toMatchObject({
      chain: {
        rpcUrl: chain.url,
        chainId: 31337,
        contract: chain.contract.toLowerCase(),
        privateKey,
        confirmations: 1,
      },
      confirmIntervalMs: 1000,
    })
    expect(privateKeyToAccount(privateKey as Hex).address).toBe(chain.publisher.address)
  })

  test('has the code that wallets may delegate to, also if the chain is older than that code', async () => {
    const first = await start()
    const reader = readerOf(first)
    expect(await reader.getCode({ address: IMPLEMENTATION })).toBe(IMPLEMENTATION_CODE)
    expect(await reader.call({ to: IMPLEMENTATION })).toMatchObject({ data: `0x${'2a'.padStart(64, '0')}` })
    await first.stop()
    const withCode = await readJournal()
    await writeJournal(withCode.slice(0, -1))
    const second = await start()
    expect(await readerOf(second).getCode({ address: IMPLEMENTATION })).toBe(IMPLEMENTATION_CODE)
    await second.stop()

    // Another program used the account first. The stack still starts and reports the missing code.
    await writeJournal(withCode.slice(0, -1))
    await sendFrom(deployer, 1)
    const notes: string[] = []
    const third = await start({ onNote: (text) => notes.push(text) })
    expect(notes).toEqual([expect.stringContaining('No code to delegate to')])
    expect(await readerOf(third).getCode({ address: IMPLEMENTATION })).toBeUndefined()
  })

  test('a restart keeps blocks, transactions, receipts, balances and logs, with the same hashes', async () => {
    const first = await start()
    await first.faucet(STRANGER)
    const event = await publish(first, keccak256('0x01'))
    await call(first, 'evm_mine')
    await call(first, 'evm_mine')
    // A reverted transaction is in a block too: only the publisher may publish.
    const stranger = createWalletClient({ account: developer, transport: http(first.url) })
    const reverted = await stranger.writeContract({
      chain: null,
      ...contractOf(first),
      functionName: 'publish',
      args: [STRANGER, keccak256('0x02'), 'cid'],
      gas: 200_000n,
    })
    await call(first, 'evm_mine')
    const before = await observe(first)
    expect(before.published).toEqual([event])
    expect(before.receipts.find(({ transactionHash }) => transactionHash === reverted)?.status).toBe('reverted')
    expect(before.balances[0]).toBe(parseEther('1'))
    expect(before.blocks).toHaveLength(10)
    await first.stop()

    const second = await start()
    expect([second.contract, second.publisher]).toEqual([first.contract, first.publisher])
    expect(await observe(second)).toEqual(before)

    // The chain continues at the next nonce and at the clock's time, and persists new blocks.
    const later = await publish(second, keccak256('0x03'))
    const { timestamp } = await readerOf(second).getBlock()
    expect(Math.abs(Number(timestamp) - Date.now() / 1000)).toBeLessThan(30)
    const after = await observe(second)
    expect(after.blocks.slice(0, -1)).toEqual(before.blocks)
    expect(after.published).toEqual([event, later])
    await second.stop()
    expect(await observe(await start())).toEqual(after)
  })

  test.each([
    ["after a long pause it uses the clock's time", -100_000, 0],
    ['after the clock was set back its time still increases', 3600, 3600],
  ])('%s', async (_, lastS, expectedS) => {
    const nowS = Math.floor(Date.now() / 1000)
    await mkdir(join(stateDir, 'chain'))
    await writeJournal(await makeJournal({ timestamp: nowS + lastS, raw: null }))
    const reader = readerOf(await start())
    expect((await reader.getBlock({ blockNumber: 0n })).timestamp).toBe(BigInt(GENESIS_TIMESTAMP))
    expect((await reader.getBlock({ blockNumber: 1n })).timestamp).toBe(BigInt(nowS + lastS))
    for (const block of [{ blockNumber: 2n }, { blockTag: 'pending' }] as const) {
      const aheadS = Number((await reader.getBlock(block)).timestamp) - nowS
      expect(aheadS).toBeGreaterThanOrEqual(expectedS)
      expect(aheadS).toBeLessThan(expectedS + 60)
    }
  })

  test('keeps every transaction that it answered when it is killed while receiving more', async () => {
    const program = `
      const { startDevChain } = await import(${JSON.stringify(join(import.meta.dirname, 'chain.ts'))})
      const chain = await startDevChain({ port: 0, stateDir: ${JSON.stringify(stateDir)} })
      console.log(chain.url)`
    let nonce = 0
    const answered = new Map<Hash, bigint>()
    for (const enough of [5, 20]) {
      const child = spawn(process.execPath, ['-C', 'source', '--input-type=module', '-e', program], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const closed = once(child, 'close')
      onTestFinished(() => void child.kill('SIGKILL'))
      const [url] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
      const reader = readerOf({ url })
      nonce = await reader.getTransactionCount({ address: developer.address })
      const goal = answered.size + enough

      // Both at once, so that the kill interrupts some. Each loop ends when the chain is gone.
      const sending = (async () => {
        for (;;) {
          const { result } = await call({ url }, 'eth_sendRawTransaction', await signTransfer(nonce++))
          const { blockNumber } = await reader.getTransactionReceipt({ hash: result as Hash })
          answered.set(result as Hash, blockNumber)
          if (answered.size >= goal) child.kill('SIGKILL')
        }
      })()
      const asking = (async () => {
        for (;;) {
          const response = await fetch(`${url}/faucet`, { method: 'POST', body: JSON.stringify({ address: STRANGER }) })
          const { txHash } = (await response.json()) as { txHash: Hash }
          const { blockNumber } = await reader.getTransactionReceipt({ hash: txHash })
          answered.set(txHash, blockNumber)
        }
      })()
      await Promise.allSettled([sending, asking])
      await closed
      expect(answered.size).toBeGreaterThanOrEqual(goal)
    }
    const reader = readerOf(await start())
    const found = await Promise.all(
      [...answered.keys()].map(async (hash) => {
        const { blockNumber, status } = await reader.getTransactionReceipt({ hash })
        expect(status).toBe('success')
        return [hash, blockNumber] as const
      }),
    )
    expect(new Map(found)).toEqual(answered)
  })

  test('drops half a line at the end with a note, and keeps whole lines', async () => {
    const first = await start()
    const hash = await first.faucet(STRANGER)
    await first.stop()
    const whole = await readJournal()
    const lost = '{"number":4,"timestamp":1794000000,"hash":"0x'
    await appendFile(journalPath(), lost)
    const notes: string[] = []
    const second = await start({ onNote: (text) => notes.push(text) })
    expect(notes).toEqual([expect.stringContaining('half written')])
    expect(await readJournal()).toEqual(whole)
    expect(await readerOf(second).getTransactionReceipt({ hash })).toMatchObject({ blockNumber: 4n })
    await second.faucet(STRANGER)
    await second.stop()
    const third = await start({ onNote: (text) => notes.push(text) })
    expect(await readerOf(third).getBalance({ address: STRANGER })).toBe(parseEther('2'))
    expect(notes).toHaveLength(1)
  })

  describe('with logs', () => {
    const logOrigins = ['log.localhost/1', 'log.localhost/2']
    const root = keccak256('0x02')

    function logWitnessOf({ logWitness }: DevChain) {
      if (logWitness === undefined) throw new Error('no LogWitness')
      const contract = { address: logWitness.address, abi: logWitnessContract.abi }
      return { ...logWitness, contract, ids: logWitness.logs.map(({ id }) => id) }
    }
    const readHeads = (chain: DevChain) => {
      const { ids, contract } = logWitnessOf(chain)
      return Promise.all(
        ids.map((id) => readerOf(chain).readContract({ ...contract, functionName: 'head', args: [id] })),
      )
    }
    async function advance(chain: DevChain): Promise<Hash> {
      const { contract, ids } = logWitnessOf(chain)
      const args = [ids[0] ?? '0x', 3n, root, keccak256('0x03'), []] as const
      return (await publisherOf(chain)).writeContract({ chain: null, ...contract, functionName: 'advance', args })
    }

    test('deploys LogWitness on any chain, registers the logs for the publisher, and returns the settings', async () => {
      await (await start()).stop()
      // Its address doesn't depend on the accounts that other programs use.
      await sendFrom(deployer, 2)
      const chain = await start({ logOrigins })
      const { address, owner, fromBlock, ids, contract } = logWitnessOf(chain)
      const reader = readerOf(chain)
      for (const id of ids) {
        expect(await reader.readContract({ ...contract, functionName: 'publisher', args: [id] })).toBe(
          chain.publisher.address,
        )
      }
      expect(ids).toEqual(logOrigins.map((origin) => toLogId(owner, fromHex(hashOrigin(origin)))))
      expect(await readHeads(chain)).toEqual(ids.map(() => [0n, zeroHash]))
      expect(toChainEnv(chain)).toMatchObject({
        PUBLISH: 'checkpoints',
        LOG_WITNESS_ADDRESS: address,
        LOG_WITNESS_OWNER: owner,
        ATTESTATIONS_ADDRESS: chain.contract,
      })
      const events = await reader.getContractEvents({ ...contract, fromBlock: 0n })
      expect(fromBlock).toBe(Number(events[0]?.blockNumber))
    })

    test('a restart keeps the contract, the logs and their heads, also after a start without logs', async () => {
      const first = await start({ logOrigins })
      const hash = await advance(first)
      const heads = await readHeads(first)
      expect(heads).toEqual([
        [3n, root],
        [0n, zeroHash],
      ])
      const { blockNumber } = await readerOf(first).getTransactionReceipt({ hash })
      await first.stop()

      const without = await start()
      expect(without.logWitness).toBeUndefined()
      expect(toChainEnv(without)).not.toHaveProperty('PUBLISH')
      await without.stop()

      const again = await start({ logOrigins })
      expect(again.logWitness).toEqual(first.logWitness)
      expect(await readHeads(again)).toEqual(heads)
      expect(await readerOf(again).getBlockNumber()).toBe(blockNumber)
    })

    test('a start that was killed before it registered the last log is continued', async () => {
      const first = await start({ logOrigins })
      await first.stop()
      await writeJournal((await readJournal()).slice(0, -1))
      const second = await start({ logOrigins })
      expect(second.logWitness).toEqual(first.logWitness)
      await advance(second)
    })

    test('every block is final at once, so that no proof waits on an idle chain', async () => {
      const chain = await start({ logOrigins })
      const hash = await advance(chain)
      const { blockNumber } = await readerOf(chain).getTransactionReceipt({ hash })
      expect(await readerOf(chain).getBlock({ blockTag: 'finalized' })).toMatchObject({ number: blockNumber })
    })
  })

  describe('a journal with different transactions', () => {
    const change = (line: string, changes: object) => JSON.stringify({ ...JSON.parse(line), ...changes })

    test.each<[string, RegExp, (lines: string[]) => string[] | Promise<string[]>]>([
      [
        'another transaction',
        /another block 3/,
        async (lines) => [...lines.slice(0, 3), change(lines[3] ?? '', { raw: await signTransfer(0) })],
      ],
      ['an invalid transaction', /at block 3: /, (lines) => lines.with(3, change(lines[3] ?? '', { raw: '0x02ff' }))],
      ['a missing line', /damaged at line 3/, (lines) => lines.toSpliced(2, 1)],
      [
        'no contract',
        /no deployment of the contract/,
        async () => makeJournal({ raw: await signTransfer(0, 31337, deployer) }),
      ],
    ])('%s: fails with the command to reset, and writes nothing', async (_, reason, spoil) => {
      const chain = await start()
      await chain.stop()
      await writeJournal(await spoil(await readJournal()))
      const spoilt = await readFile(journalPath(), 'utf8')
      const message = await failureOf()
      expect(message).toMatch(reason)
      expect(message).toContain('npm run dev -- --reset')
      expect(message).toContain(journalPath())
      expect(await readFile(journalPath(), 'utf8')).toBe(spoilt)
      // It also releases its port and file.
      await clearState(stateDir)
      expect(await readerOf(await start()).getBlockNumber()).toBe(3n)
    })
  })

  test("a contract with another publisher's key", async () => {
    const { stop, publisher } = await start()
    await stop()
    await writeFile(publisher.privateKeyFile, `${generatePrivateKey()}\n`)
    expect(await failureOf()).toMatch(/contract of another publisher; `npm run dev -- --reset`/)
  })

  test.each(['', '0x', 'secret-but-no-key', `0x${'ff'.repeat(32)}`])(
    'rejects the key %j without printing it',
    async (text) => {
      await mkdir(join(stateDir, 'chain'))
      await writeFile(join(stateDir, 'chain', 'publisher.key'), text)
      const message = await failureOf()
      expect(message).toMatch(/publisher\.key holds no private key; `npm run dev -- --reset`/)
      if (text.length > 2) expect(message).not.toContain(text)
    },
  )

  test('a start that is interrupted while it writes the key leaves no key', async () => {
    const folder = join(stateDir, 'chain')
    await mkdir(folder)
    await onSync(() => {
      throw new Error('power failure')
    })
    await expect(start()).rejects.toThrow('power failure')
    expect(await readdir(folder)).toEqual([])
  })

  test('funds a publisher again at the next start', async () => {
    const first = await start()
    await (await publisherOf(first)).sendTransaction({ chain: null, to: STRANGER, value: parseEther('95') })
    await first.stop()
    const second = await start()
    expect(await readerOf(second).getBalance({ address: second.publisher.address })).toBeGreaterThan(parseEther('104'))
  })

  test('rejects what could not be replayed, and changes nothing', async () => {
    const chain = await start()
    const before = await observe(chain)
    const refused: [string, ...unknown[]][] = [
      ['eth_sendTransaction', { from: developer.address, to: STRANGER, value: '0x1' }],
      ['hardhat_setBalance', STRANGER, '0x1'],
      ['hardhat_mine', '0x5'],
      ['hardhat_reset'],
      ['evm_mine', 1_900_000_000],
      ['evm_increaseTime', 1000],
      ['evm_revert', '0x1'],
      ['evm_setAutomine', false],
      ['anvil_mine'],
      ['nonsense'],
    ]
    for (const [method, ...params] of refused) {
      expect([method, (await call(chain, method, ...params)).error?.code]).toEqual([method, -32004])
    }
    for (const raw of ['0x', '0x00', 5, null, 'zz', await signTransfer(7), await signTransfer(0, 1)]) {
      expect([raw, (await call(chain, 'eth_sendRawTransaction', raw)).error?.code]).toEqual([raw, expect.any(Number)])
    }
    expect(await observe(chain)).toEqual(before)
    // A rejected call does not block the next.
    await chain.faucet(STRANGER)
    await chain.stop()
    expect(await readJournal()).toHaveLength(5)
    await start()
  })

  test('stops answering if the journal is gone, because its blocks would be lost', async () => {
    const chain = await start()
    await appendFile(journalPath(), '{"number":3}\n')
    const { error } = await call(chain, 'eth_sendRawTransaction', await signTransfer(0))
    expect(error?.message).toMatch(/in use by another process/)
    expect((await call(chain, 'eth_blockNumber')).error?.message).toMatch(/in use by another process/)
    expect((await post(chain, JSON.stringify({ address: STRANGER }))).status).toBe(503)
  })

  test('fails if the port is taken, and releases the folder', async () => {
    const { url, stop } = await start()
    const port = Number(new URL(url).port)
    await expect(start({ stateDir: join(stateDir, 'other'), port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
    await stop()
    const again = await start({ port })
    expect(again.url).toBe(url)
    await Promise.all([again.stop(), again.stop()])
  })
})

describe('POST /faucet', () => {
  test('sends one ether per call', async () => {
    const chain = await start()
    for (const count of [1n, 2n]) {
      const response = await post(chain, JSON.stringify({ address: STRANGER }))
      const { txHash } = (await response.json()) as { txHash: Hash }
      expect(response.status).toBe(200)
      expect(response.headers.get('access-control-allow-origin')).toBe('*')
      expect(await readerOf(chain).getTransaction({ hash: txHash })).toMatchObject({ value: parseEther('1') })
      expect(await readerOf(chain).getBalance({ address: STRANGER })).toBe(count * parseEther('1'))
    }
  })

  test('rejects bad input with 400 and sends nothing', async () => {
    const chain = await start()
    const bodies = [
      '',
      '{',
      'null',
      '{}',
      '{"address":5}',
      '{"address":"0x00000000000000000000000000000000000c0ff"}',
      // A wrong checksum: the correct spelling is 0xf39Fd6e51aad….
      '{"address":"0xf39Fd6e51Aad88F6F4ce6aB8827279cffFb92266"}',
      // Accepts no ether.
      JSON.stringify({ address: chain.contract }),
    ]
    for (const body of bodies) {
      const response = await post(chain, body)
      expect([body, response.status, await response.json()]).toEqual([body, 400, { error: expect.any(String) }])
    }
    expect((await fetch(`${chain.url}/faucet`)).status).toBe(405)
    expect(await readerOf(chain).getBlockNumber()).toBe(3n)
  })
})
