import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createFolder, readCode, writeNewFile } from '@countersign/service'
import { type ChainAccount, startChain } from '@countersign/testing'
import { type Environment, toPublisherEnv } from '@countersign/testing/launcher'
import {
  type Address,
  createPublicClient,
  createWalletClient,
  getContractAddress,
  type Hash,
  type Hex,
  http,
  isAddress,
  isAddressEqual,
  parseEther,
  publicActions,
} from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { logWitness, serviceAttestations } from '../contracts/abi.ts'
import { deployLogWitness, deployServiceAttestations } from '../contracts/deployContract.ts'
import { ChainJournalError, openChainJournal } from './chainJournal.ts'
import { ChainLedgerError, createChainLedger } from './chainLedger.ts'
import { IMPLEMENTATION, IMPLEMENTATION_BYTECODE } from './implementation.ts'

export type StartDevChainParameters = {
  /** On loopback; 0 for a free one. */
  port: number
  stateDir: string
  /** 31337 by default. */
  chainId?: number
  /** Deploys LogWitness too, with these logs. */
  logOrigins?: readonly string[] | undefined
  /** Receives notes for the user that need no action. */
  onNote?: (text: string) => void
}

export type DevChain = {
  /** JSON-RPC, and `POST /faucet`. */
  url: string
  chainId: number
  /** ServiceAttestations: the same address on every local chain. */
  contract: Address
  /** With `logOrigins`. */
  logWitness?: LogWitness | undefined
  publisher: { address: Address; privateKeyFile: string }
  /** Sends one ether to the address. */
  faucet(address: Address): Promise<Hash>
  /** Stops the chain. The next start in the same folder continues it. */
  stop(): Promise<void>
}

/** A LogWitness contract, with the logs that its owner registered. */
type LogWitness = { address: Address; owner: Address; fromBlock: number; logs: readonly { id: Hash }[] }

/** The same everywhere, so that block 0 has one hash and replayed blocks keep their hashes. */
const GENESIS_TIMESTAMP = Date.UTC(2025, 0, 1) / 1000
const FAUCET_WEI = parseEther('1')
const PUBLISHER_WEI = parseEther('100')
/** A publisher with less is funded at the next start. */
const PUBLISHER_LOW_WEI = parseEther('10')

/**
 * The chain of the local stack, with the contract on it. Blocks are journaled before any caller sees them and mined again at the next start,
 * with the same numbers, hashes, transactions, receipts, logs and balances.
 */
export async function startDevChain(parameters: StartDevChainParameters): Promise<DevChain> {
  const { port, stateDir, chainId = 31337, logOrigins, onNote } = parameters
  const folder = join(stateDir, 'chain')
  await createFolder(folder)
  const path = join(folder, 'journal.jsonl')
  const privateKeyFile = join(folder, 'publisher.key')
  const { address: publisher } = await loadAccount(privateKeyFile)
  const journal = await openChainJournal({ path, chainId })
  if (journal.wasTorn)
    onNote?.('Dropped the last line of the journal, which was half written when the chain was killed.')
  const ledger = createChainLedger({ journal, path, chainId })
  // Stopped in reverse order.
  const parts: (() => Promise<void>)[] = [journal.close]
  let payer: ChainAccount | undefined
  let stopping: Promise<void> | undefined

  async function pay(to: Address, valueWei: bigint): Promise<Hash> {
    if (!payer) throw new Error('the chain has not started')
    return ledger.transfer({ from: payer, to, valueWei })
  }
  const faucet = (to: Address) => pay(to, FAUCET_WEI)
  async function stop() {
    for (const end of parts.reverse()) await end()
  }
  try {
    const chain = await startChain({
      port,
      chainId,
      genesisTimestamp: GENESIS_TIMESTAMP,
      async wrap(node, accounts) {
        payer = accounts.at(-1)
        await ledger.attach(node)
        return ledger.request
      },
      routes: { '/faucet': (body) => answerFaucet(faucet, body) },
    })
    parts.push(chain.stop, ledger.end)
    const contract = await loadContract({ url: chain.url, chainId, deployer: chain.accounts[0], publisher, path })
    const reader = createPublicClient({ transport: http(chain.url) })
    if ((await reader.getBalance({ address: publisher })) < PUBLISHER_LOW_WEI) await pay(publisher, PUBLISHER_WEI)
    if (!(await loadImplementation(chain.url, chain.accounts[0]))) {
      onNote?.(
        'No code to delegate to (EIP-7702), because another transaction of the first account took its nonce. `npm run dev -- --reset` starts a new chain.',
      )
    }
    const logWitness =
      logOrigins &&
      (await loadLogWitness({
        url: chain.url,
        chainId,
        owner: await loadAccount(join(folder, 'log-owner.key')),
        publisher,
        origins: logOrigins,
        faucet,
        path,
      }))
    return {
      url: chain.url,
      chainId,
      contract,
      logWitness,
      publisher: { address: publisher, privateKeyFile },
      faucet,
      stop() {
        stopping ??= stop()
        return stopping
      },
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** A coordinator's settings for publishing on the chain. */
export function toChainEnv({ url, chainId, contract, logWitness, publisher }: DevChain): Environment {
  const key = { file: publisher.privateKeyFile }
  return toPublisherEnv({ rpcUrl: url, chainId, contract, logWitness, key, confirmIntervalMs: 1_000 })
}

/**
 * An account that the first start creates. A well-known account would not work: developers' wallets and scripts use those too. They would take
 * the nonces that the publisher has reserved, or the nonce that decides the contract's address.
 */
async function loadAccount(path: string): Promise<ChainAccount> {
  try {
    await writeNewFile({ path, text: `${generatePrivateKey()}\n`, mode: 0o600 })
  } catch (error) {
    if (readCode(error) !== 'EEXIST') throw error
  }
  const privateKey = (await readFile(path, 'utf8')).trim() as Hex
  try {
    return { address: privateKeyToAccount(privateKey).address, privateKey }
  } catch {
    // The parser's message could contain the key.
    throw new ChainJournalError(path, 'holds no private key')
  }
}

type LoadContractParameters = {
  url: string
  chainId: number
  deployer: ChainAccount | undefined
  publisher: Address
  path: string
}

/** Deploys the contract at the first start. Later starts require the same bytecode and publisher. */
async function loadContract({ url, chainId, deployer, publisher, path }: LoadContractParameters): Promise<Address> {
  if (!deployer) throw new Error('the chain has no accounts')
  const reader = createPublicClient({ transport: http(url) })
  const address = getContractAddress({ from: deployer.address, nonce: 0n })
  const { abi, deployedBytecode } = serviceAttestations
  const code = await reader.getCode({ address })
  if (code === undefined) {
    if ((await reader.getTransactionCount({ address: deployer.address })) > 0) {
      throw new ChainJournalError(path, 'has no deployment of the contract')
    }
    const { privateKey, address: owner } = deployer
    await deployServiceAttestations({ rpcUrl: url, privateKey, owner, publisher, chainId, pollingIntervalMs: 50 })
    return address
  }
  if (code !== deployedBytecode) throw new ChainJournalError(path, 'has another version of the contract')
  if ((await reader.readContract({ address, abi, functionName: 'publisher' })) !== publisher) {
    throw new ChainJournalError(path, 'has a contract of another publisher')
  }
  return address
}

type LoadLogWitnessParameters = {
  url: string
  chainId: number
  owner: ChainAccount
  publisher: Address
  origins: readonly string[]
  faucet: DevChain['faucet']
  path: string
}

/**
 * Deploys LogWitness and registers the logs, at the first start with `--checkpoints`. Its owner sends only these transactions, so that every
 * start finds the contract. Later starts require the same bytecode and publisher.
 */
async function loadLogWitness(parameters: LoadLogWitnessParameters): Promise<LogWitness> {
  const { url: rpcUrl, chainId, owner, publisher, origins, faucet, path } = parameters
  const reader = createPublicClient({ transport: http(rpcUrl) })
  const { abi, deployedBytecode } = logWitness
  const address = getContractAddress({ from: owner.address, nonce: 0n })
  const code = await reader.getCode({ address })
  if (code === undefined) await faucet(owner.address)
  else if (code !== deployedBytecode) throw new ChainJournalError(path, 'has another version of LogWitness')
  const { logs } = await deployLogWitness({
    rpcUrl,
    privateKey: owner.privateKey,
    publisher,
    origins,
    chainId,
    pollingIntervalMs: 50,
    ...(code === undefined ? {} : { address }),
  })
  const [registered] = await reader.getContractEvents({ address, abi, eventName: 'PublisherRotated', fromBlock: 0n })
  return {
    address,
    owner: owner.address,
    fromBlock: Number(registered?.blockNumber ?? 0n),
    logs,
  }
}

/**
 * Deploys the code that wallets may delegate to where it is missing: at the first start, and on chains older than this code. Returns false if
 * the account has other transactions, because the code would get another address.
 */
async function loadImplementation(url: string, deployer: ChainAccount | undefined): Promise<boolean> {
  if (!deployer) throw new Error('the chain has no accounts')
  const account = privateKeyToAccount(deployer.privateKey)
  const client = createWalletClient({ account, transport: http(url) }).extend(publicActions)
  if ((await client.getCode({ address: IMPLEMENTATION })) !== undefined) return true
  const nonce = await client.getTransactionCount({ address: account.address })
  const address = getContractAddress({ from: account.address, nonce: BigInt(nonce) })
  if (!isAddressEqual(address, IMPLEMENTATION)) return false
  const hash = await client.sendTransaction({ chain: null, data: IMPLEMENTATION_BYTECODE })
  await client.waitForTransactionReceipt({ hash, pollingInterval: 50 })
  return true
}

async function answerFaucet(faucet: (address: Address) => Promise<Hash>, body: string) {
  const refuse = (status: number, error: string) => ({ status, body: { error } })
  const address = parseFaucetRequest(body)
  if (address === undefined) return refuse(400, 'expected { "address": "0x…" } with a valid checksum, if it has one')
  try {
    return { status: 200, body: { txHash: await faucet(address) } }
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'unknown error'
    // Otherwise the node rejected it: the contract accepts no ether, or the faucet is empty.
    return refuse(error instanceof ChainLedgerError ? 503 : 400, `nothing was sent: ${reason}`)
  }
}

function parseFaucetRequest(body: string): Address | undefined {
  try {
    const { address } = JSON.parse(body)
    return typeof address === 'string' && isAddress(address) ? address : undefined
  } catch {
    return undefined
  }
}
