import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { readBounded } from '@countersign/protocol'
import type { NetworkConnection } from 'hardhat/types/network'
import { type Hex, hexToNumber, toHex } from 'viem'
import { mnemonicToAccount, privateKeyToAccount } from 'viem/accounts'
import { loadHardhat } from './hardhat.ts'
import { type Listening, listen } from './listen.ts'

export type StartChainOptions = {
  /** Default: 31337. */
  chainId?: number
  /** Port on loopback. Default: a free one. */
  port?: number
  /** When to mine blocks: for each transaction (`auto`, the default), or only on `mine`. */
  mining?: 'auto' | 'manual'
  /** Time of block 0 in seconds, where the chain's clock starts. Default: now. */
  genesisTimestamp?: number
  /** Wraps the node before the port opens. Callers are served by the returned function. */
  wrap?: (node: NodeRequest, accounts: readonly ChainAccount[]) => Promise<NodeRequest>
  /** Handlers for POST requests to other paths. All other paths are JSON-RPC. */
  routes?: Readonly<Record<string, ChainRoute>>
}

/** A call of the node. Errors may have a numeric JSON-RPC `code`. */
export type NodeRequest = (method: string, params: unknown[]) => Promise<unknown>

type ChainRoute = (body: string) => Promise<{ status: number; body: unknown }>

export type ChainAccount = { address: `0x${string}`; privateKey: `0x${string}` }

export type LocalChain = Awaited<ReturnType<typeof startChain>>

const MNEMONIC = 'test test test test test test test test test test test junk'
const BALANCE_WEI = 10_000n * 10n ** 18n
const MAX_REQUEST_BYTES = 16 * 1024 * 1024

/**
 * Starts a real EVM node in this process, with a new chain. It behaves like public nodes: a transaction that reverts is mined with a receipt,
 * while Hardhat would return an error to the sender.
 */
export async function startChain(options: StartChainOptions = {}) {
  const { chainId = 31337, port = 0, mining = 'auto', genesisTimestamp, wrap } = options
  const accounts = deriveAccounts()
  const connection = await connect({ chainId, mining, accounts, genesisTimestamp })
  const routes = new Map(Object.entries(options.routes ?? {}))
  let node: NodeRequest = (method, params) => connection.provider.request({ method, params })
  const server = createServer((request, response) => void answer({ node, routes }, request, response))
  let listening: Listening
  try {
    if (wrap) node = await wrap(node, accounts)
    // Block 0 is dated before the node has loaded, which takes seconds on a busy machine.
    if (genesisTimestamp === undefined) await catchUp(node)
    listening = await listen(server, port)
  } catch (error) {
    await connection.close()
    throw error
  }
  let stopping: Promise<void> | undefined

  async function stop() {
    await listening.stop()
    await connection.close()
  }

  return {
    /** JSON-RPC over HTTP, with CORS. */
    url: listening.url,
    chainId,
    /** Each with 10,000 ether. Their private keys are public, the same as in every Hardhat and Anvil node. */
    accounts: accounts as readonly ChainAccount[],
    /** Mines blocks immediately. The first one takes the pending transactions. */
    async mine(count = 1) {
      await connection.provider.request({ method: 'hardhat_mine', params: [toHex(count)] })
    },
    /** Stops the node, which frees its port and discards its chain. */
    stop() {
      stopping ??= stop()
      return stopping
    },
  }
}

type ConnectParameters = Required<Pick<StartChainOptions, 'chainId' | 'mining'>> & {
  accounts: ChainAccount[]
  genesisTimestamp: number | undefined
}

async function connect(parameters: ConnectParameters): Promise<NetworkConnection> {
  const { chainId, mining, accounts, genesisTimestamp } = parameters
  const { createHardhatRuntimeEnvironment } = await loadHardhat()
  const local = {
    type: 'edr-simulated' as const,
    chainType: 'l1' as const,
    // Fixed, so that gas doesn't change with Hardhat's default.
    hardfork: 'osaka',
    chainId,
    networkId: chainId,
    mining: { auto: mining === 'auto', interval: 0 },
    accounts: accounts.map(({ privateKey }) => ({ privateKey, balance: BALANCE_WEI })),
    throwOnTransactionFailures: false,
    // Otherwise each of several blocks in a second is dated a second later, and the chain gets ahead of the clock.
    allowBlocksWithSameTimestamp: true,
    ...(genesisTimestamp === undefined ? {} : { initialDate: new Date(genesisTimestamp * 1000) }),
  }
  // Hardhat requires a package folder, but only searches it for artifacts. There are none.
  const hardhat = await createHardhatRuntimeEnvironment({ networks: { local } }, {}, import.meta.dirname)
  return (await hardhat.network.create({ network: 'local', chainType: 'l1' })) as unknown as NetworkConnection
}

/** The chain's clock continues from its last block, so this adds the time since then. */
export async function catchUp(node: NodeRequest): Promise<void> {
  const pending = (await node('eth_getBlockByNumber', ['pending', false])) as { timestamp: Hex }
  const behind = Math.floor(Date.now() / 1000) - hexToNumber(pending.timestamp)
  if (behind > 0) await node('evm_increaseTime', [behind])
}

/** Derives the parent once, since its seed takes thousands of hashes. */
function deriveAccounts(): ChainAccount[] {
  const parent = mnemonicToAccount(MNEMONIC, { path: "m/44'/60'/0'/0" }).getHdKey()
  return Array.from({ length: 10 }, (_, index) => {
    const { privateKey: bytes } = parent.deriveChild(index)
    if (bytes === null) throw new Error('no private key')
    const privateKey = toHex(bytes)
    return { address: privateKeyToAccount(privateKey).address, privateKey }
  })
}

type RpcRequest = { id?: unknown; method: string; params?: unknown[] }

// Allows pages on other ports, such as the web app. Nothing here is confidential.
const CORS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'POST',
  'access-control-allow-headers': 'content-type',
}

type Served = { node: NodeRequest; routes: ReadonlyMap<string, ChainRoute> }

/** Replaces Hardhat's server, which doesn't report a taken port and can't close while a client is connected. */
async function answer({ node, routes }: Served, request: IncomingMessage, response: ServerResponse) {
  if (request.method === 'OPTIONS') return void response.writeHead(204, CORS).end()
  if (request.method !== 'POST') return void response.writeHead(405, { ...CORS, allow: 'POST' }).end()
  try {
    const text = Buffer.from(await readBounded(request, MAX_REQUEST_BYTES)).toString('utf8')
    const route = routes.get(request.url ?? '/')
    const { status, body } = route ? await route(text) : { status: 200, body: await toAnswer(node, text) }
    response.writeHead(status, { ...CORS, 'content-type': 'application/json' }).end(JSON.stringify(body))
  } catch {
    // The client disconnected, or sent an oversized request.
    response.destroy()
  }
}

async function toAnswer(node: NodeRequest, text: string): Promise<unknown> {
  let message: unknown
  try {
    message = JSON.parse(text)
  } catch {
    return toFailure(null, -32700, 'Parse error')
  }
  if (!Array.isArray(message)) return call(node, message)
  if (message.length === 0) return toFailure(null, -32600, 'Invalid request')
  return Promise.all(message.map((item) => call(node, item)))
}

async function call(node: NodeRequest, message: unknown): Promise<unknown> {
  if (!isRpcRequest(message)) return toFailure(null, -32600, 'Invalid request')
  const { id = null, method, params = [] } = message
  try {
    return { jsonrpc: '2.0', id, result: await node(method, params) }
  } catch (error) {
    const { code, message: text, data } = error as { code?: unknown; message: string; data?: unknown }
    const revertData = typeof data === 'object' && data !== null && 'data' in data ? data.data : data
    return toFailure(id, typeof code === 'number' ? code : -32603, text, revertData)
  }
}

function isRpcRequest(value: unknown): value is RpcRequest {
  if (typeof value !== 'object' || value === null || !('method' in value)) return false
  return typeof value.method === 'string' && (!('params' in value) || Array.isArray(value.params))
}

/** Nodes return the data of a reverted call as plain hex, where clients expect it. */
function toFailure(id: unknown, code: number, message: string, data?: unknown) {
  return { jsonrpc: '2.0', id, error: { code, message, ...(data === undefined ? {} : { data }) } }
}
