import {
  type AttestationPublished,
  attestationPublishedTopic,
  type CheckpointEvent,
  checkpointTopic,
  type Hex,
  isBodyTooLarge,
  isPlainObject,
  readBounded,
  toSizeTopic,
} from '@countersign/protocol'
import { readCauseCode } from '@countersign/service'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { encodeFunctionData, keccak256 } from 'viem/utils'
import {
  anchored,
  type Block,
  type ChainReceipt,
  type EventKind,
  parseBlock,
  parseBlockTime,
  parseEvents,
  parseHash,
  parseNumber,
  parseObject,
  parseQuantity,
  parseReceipt,
  published,
} from './answers.ts'
import { ChainError } from './chainError.ts'
import { logWitnessAbi, publisherAbi } from './contract.ts'
import { classifyNodeError, describeRevert, type NodeError, type NodeVerdict, toPlainText } from './nodeError.ts'

/** EIP-1559, in wei. */
export type Fees = { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }

export type Call = { to: Hex; data: Hex }

type UnsignedTransaction = Call & Fees & { nonce: number; gas: bigint; value?: bigint }

type SignedTransaction = { raw: Hex; hash: Hex }

/** The chain as the publisher's account sees it. All methods throw `ChainError`. */
export type Chain = {
  readonly chainId: number
  /** The publisher's address, lower case. */
  readonly account: Hex
  /** ServiceAttestations, lower case. */
  readonly contract: Hex
  /** The highest fee ever bid. `getFees` and `sign` throw above it. */
  readonly maxFeePerGas: bigint
  /** Throws if the RPC serves another chain, the contract has no code, or this account isn't its publisher. */
  assertReady(): Promise<void>
  /** The next nonce after the newest block (`latest`) or after the node's mempool (`pending`). Default account: the publisher. */
  getNonce(block: 'latest' | 'pending', account?: Hex): Promise<number>
  /** The publisher's balance in wei. */
  getBalance(): Promise<bigint>
  /** Twice the base fee plus the tip, which is enough for five full blocks in a row. */
  getFees(): Promise<Fees>
  /** The gas that a call needs now. Throws `call_reverted` if it would fail. */
  estimateGas(call: Call): Promise<bigint>
  /** Signs offline and deterministically. Throws above `maxFeePerGas`. */
  sign(transaction: UnsignedTransaction): Promise<SignedTransaction>
  /** Sends stored bytes. A transaction that the node knows or has mined counts as sent. */
  send(raw: Hex): Promise<void>
  /** `undefined` if the node knows no canonical block with the transaction. Nodes may lag. Default: events of `contract`. */
  getReceipt(hash: Hex, contract?: Hex): Promise<ChainReceipt | undefined>
  /** The newest checkpoint of a log in LogWitness, and its publisher. Throws `contract_missing` for another contract. */
  readLog(log: { contract: Hex; id: Hex }): Promise<{ size: number; root: string; publisher: Hex }>
  /** Finds checkpoints of this size since that time. */
  findCheckpoints(parameters: { contract: Hex; id: Hex; size: number; sinceMs: number }): Promise<CheckpointEvent[]>
  /** `finalized` is `undefined` if the chain has never reported it. */
  getHead(): Promise<{ number: number; finalized: number | undefined }>
  /** The hash of the canonical block, if it exists. */
  getBlockHash(number: number): Promise<Hex | undefined>
  /** Finds the contract's events for these wallets and transactions, with any CID, since that time. */
  findEvents(parameters: {
    proofs: readonly Pick<AttestationPublished, 'wallet' | 'txHash'>[]
    sinceMs: number
  }): Promise<AttestationPublished[]>
}

export type CreateViemChainParameters = {
  /** May contain an API key, which no error repeats. */
  rpcUrl: string
  chainId: number
  contract: Hex
  privateKey: Hex
  /** Limit of each request, to the last byte. */
  timeoutMs?: number
  maxAnswerBytes?: number
  /** Limit of one search for events with all its requests. Default: five minutes. */
  searchMs?: number
  /** The highest fee ever bid, including replacements. Default: 10,000 gwei. Protects the account from a lying RPC. */
  maxFeePerGas?: bigint
  fetch?: typeof fetch
}

type Answer = { result: unknown } | { error: NodeError }

const MAX_ANSWER_BYTES = 4_194_304
const MAX_FEE_PER_GAS = 10_000n * 10n ** 9n
const MAX_GAS = 2n ** 53n - 1n
const MAX_BALANCE = 2n ** 256n - 1n
/** Blocks per `eth_getLogs` request. Providers have different limits, so each rejection halves it. */
const LOG_WINDOW = 1000

/** Adds the time of the newest block, for operators. */
export type ViemChain = Chain & { getHeadTime(): Promise<number> }

/**
 * A chain behind an untrusted JSON-RPC endpoint. Limits its answers in time and size, and checks them. Never retries: the pipeline decides
 * about that.
 */
export function createViemChain(parameters: CreateViemChainParameters): ViemChain {
  const { rpcUrl, chainId, timeoutMs = 10_000, maxAnswerBytes = MAX_ANSWER_BYTES, searchMs = 300_000 } = parameters
  const { maxFeePerGas: maxFee = MAX_FEE_PER_GAS } = parameters
  const url = parseUrl(rpcUrl)
  const redact = createRedact(url)
  const contract = toContract(parameters.contract)
  const signer = toAccount(parameters.privateKey)
  const account = signer.address.toLowerCase() as Hex
  const post = createPost(url, { timeoutMs, maxAnswerBytes, fetch: parameters.fetch ?? fetch })
  let finalized: number | undefined

  async function call(method: string, params: unknown[]): Promise<Answer> {
    const { status, body } = await post(method, params)
    const { error, result } = isPlainObject(body) ? body : {}
    const isOk = status >= 200 && status < 300
    if (isPlainObject(error) && Number.isInteger(error.code) && typeof error.message === 'string') {
      return { error: { code: error.code as number, message: error.message, data: error.data } }
    }
    if (!isOk) throw unavailable(method, `status ${status}`)
    if (error !== undefined && error !== null) throw unavailable(method, 'invalid JSON-RPC error')
    if (result === undefined) throw unavailable(method, 'neither a result nor an error')
    return { result }
  }

  /** For requests that a healthy node always answers. */
  async function read<Value>(method: string, params: unknown[], parse: (result: unknown) => Value): Promise<Value> {
    const answer = await call(method, params)
    if ('error' in answer) throw unavailable(method, describe(answer.error))
    return parseAnswer(method, answer.result, parse)
  }

  const describe = ({ code, message }: NodeError) => `${code} ${toPlainText(redact(message))}`

  function toChainError(method: string, verdict: NodeVerdict, error: NodeError): ChainError {
    if (verdict === 'call_reverted') return new ChainError(verdict, { details: describeRevert(error) })
    const code = verdict === 'already_known' ? 'chain_unavailable' : verdict
    return new ChainError(code, { details: `${method}: ${describe(error)}` })
  }

  const getBlock = (block: string) => read('eth_getBlockByNumber', [block, false], parseBlock)

  async function getLatestBlock(): Promise<Block> {
    const block = await getBlock('latest')
    if (block === undefined) throw unavailable('eth_getBlockByNumber', 'no latest block')
    return block
  }

  async function isOlder(number: number, timeMs: number): Promise<boolean> {
    return (await read('eth_getBlockByNumber', [toQuantity(number), false], parseBlockTime)) < timeMs
  }

  /** Undefined for nodes without finality, which return null or some error. */
  async function getFinalized(): Promise<number | undefined> {
    const method = 'eth_getBlockByNumber'
    const answer = await call(method, ['finalized', false])
    if ('result' in answer) return parseAnswer(method, answer.result, parseBlock)?.number
    if (isBusy(answer.error)) throw unavailable(method, describe(answer.error))
    return undefined
  }

  /** Falls back to the gas price on chains without tips. */
  async function getTip(baseFeePerGas: bigint): Promise<bigint> {
    const method = 'eth_maxPriorityFeePerGas'
    const answer = await call(method, [])
    if ('result' in answer) return parseAnswer(method, answer.result, (value) => parseQuantity('tip', value))
    if (answer.error.code !== -32601 && answer.error.code !== -32004) throw unavailable(method, describe(answer.error))
    const gasPrice = await read('eth_gasPrice', [], (value) => parseQuantity('gas price', value))
    return gasPrice > baseFeePerGas ? gasPrice - baseFeePerGas : 0n
  }

  function assertWithinLimit(maxFeePerGas: bigint): void {
    if (maxFeePerGas <= maxFee) return
    throw new ChainError('chain_unavailable', { details: `fees of ${maxFeePerGas} wei are above the limit` })
  }

  async function isKnown(hash: Hex): Promise<boolean> {
    return await read('eth_getTransactionByHash', [hash], (result) => {
      if (result === null) return false
      const transaction = parseObject('transaction', result)
      if (parseHash('transaction.hash', transaction.hash) === hash) return true
      throw new ChainError('chain_unavailable', { details: 'another transaction' })
    })
  }

  /** Reads all matching events since that time, in windows that the node accepts. */
  async function searchLogs<Event>(
    kind: EventKind<Event>,
    { address, topics, sinceMs }: { address: Hex; topics: readonly unknown[]; sinceMs: number },
  ): Promise<Event[]> {
    const { number: newest } = await getLatestBlock()
    const found: Event[] = []
    const endsAt = performance.now() + searchMs
    let from = await findLast(newest, (number) => isOlder(number, sinceMs))
    let window = LOG_WINDOW
    while (from <= newest) {
      // A node that lies about times or heights could make the search endless.
      if (performance.now() >= endsAt) throw unavailable('eth_getLogs', 'the search took too long')
      const to = Math.min(from + window - 1, newest)
      const filter = { address, topics, fromBlock: toQuantity(from), toBlock: toQuantity(to) }
      const answer = await call('eth_getLogs', [filter])
      if ('error' in answer) {
        if (window === 1) throw unavailable('eth_getLogs', describe(answer.error))
        window = Math.floor(window / 2)
        continue
      }
      found.push(...parseAnswer('eth_getLogs', answer.result, (result) => parseEvents(result, kind, address)))
      from = to + 1
    }
    return found
  }

  return {
    chainId,
    account,
    contract,
    maxFeePerGas: maxFee,

    async assertReady() {
      const actual = await read('eth_chainId', [], (result) => parseNumber('chain id', result))
      if (actual !== chainId) {
        throw new ChainError('chain_mismatch', { details: `expected chain ${chainId}, but the RPC serves ${actual}` })
      }
      const code = await read('eth_getCode', [contract, 'latest'], parseBytes)
      if (code === '0x') throw new ChainError('contract_missing', { details: `no code at ${contract}` })
      const data = encodeFunctionData({ abi: publisherAbi, functionName: 'publisher' })
      const answer = await call('eth_call', [{ to: contract, data }, 'latest'])
      if ('error' in answer && classifyNodeError(answer.error) !== 'call_reverted') {
        throw unavailable('eth_call', describe(answer.error))
      }
      const word = 'error' in answer ? '0x' : parseAnswer('eth_call', answer.result, parseBytes)
      if (!/^0x0{24}[0-9a-f]{40}$/.test(word)) {
        throw new ChainError('contract_missing', { details: `another contract at ${contract}` })
      }
      const publisher: Hex = `0x${word.slice(26)}`
      if (publisher !== account) {
        throw new ChainError('publisher_not_allowed', { details: `the publisher is ${publisher}, not ${account}` })
      }
    },

    getHeadTime: () => read('eth_getBlockByNumber', ['latest', false], parseBlockTime),

    getNonce(block, of = account) {
      return read('eth_getTransactionCount', [of, block], (result) => parseNumber('nonce', result))
    },

    getBalance() {
      return read('eth_getBalance', [account, 'latest'], (result) => parseQuantity('balance', result, MAX_BALANCE))
    },

    async getFees(): Promise<Fees> {
      const { baseFeePerGas } = await getLatestBlock()
      if (baseFeePerGas === undefined) throw unavailable('eth_getBlockByNumber', 'the chain has no base fee')
      const maxPriorityFeePerGas = await getTip(baseFeePerGas)
      const maxFeePerGas = 2n * baseFeePerGas + maxPriorityFeePerGas
      assertWithinLimit(maxFeePerGas)
      return { maxFeePerGas, maxPriorityFeePerGas }
    },

    async estimateGas({ to, data }: Call) {
      const method = 'eth_estimateGas'
      const answer = await call(method, [{ from: account, to, data }])
      if ('result' in answer) {
        return parseAnswer(method, answer.result, (value) => parseQuantity('gas', value, MAX_GAS))
      }
      throw toChainError(method, classifyNodeError(answer.error), answer.error)
    },

    async sign({ nonce, to, data, gas, maxFeePerGas, maxPriorityFeePerGas, value = 0n }: UnsignedTransaction) {
      assertWithinLimit(maxFeePerGas)
      const fields = { chainId, nonce, to, data, gas, maxFeePerGas, maxPriorityFeePerGas, value }
      const raw = await signer.signTransaction({ type: 'eip1559', ...fields })
      return { raw, hash: keccak256(raw) }
    },

    async send(raw) {
      const method = 'eth_sendRawTransaction'
      const hash = keccak256(raw)
      const answer = await call(method, [raw])
      if ('result' in answer) {
        const answered = parseAnswer(method, answer.result, (value) => parseHash('transaction hash', value))
        if (answered !== hash) throw unavailable(method, 'another hash')
        return
      }
      const verdict = classifyNodeError(answer.error)
      if (verdict === 'already_known') return
      // A node rejects a mined transaction for its nonce, and hardhat returns an error for one that reverts but mines it.
      if (verdict !== 'chain_unavailable' && (await isKnown(hash))) return
      throw toChainError(method, verdict, answer.error)
    },

    getReceipt(text, of = contract) {
      const hash = text.toLowerCase() as Hex
      return read('eth_getTransactionReceipt', [hash], (result) => parseReceipt(result, { hash, contract: of }))
    },

    async readLog({ contract: to, id }) {
      const ask = async (functionName: 'head' | 'publisher', words: number) => {
        const data = encodeFunctionData({ abi: logWitnessAbi, functionName, args: [id] })
        const answer = await call('eth_call', [{ to, data }, 'latest'])
        if ('error' in answer && classifyNodeError(answer.error) !== 'call_reverted') {
          throw unavailable('eth_call', describe(answer.error))
        }
        const word = 'error' in answer ? '0x' : parseAnswer('eth_call', answer.result, parseBytes)
        if (word.length === 2 + 64 * words) return word.slice(2)
        throw new ChainError('contract_missing', { details: `no LogWitness at ${to}` })
      }
      const [head, publisher] = [await ask('head', 2), await ask('publisher', 1)]
      const size = parseAnswer('eth_call', `0x${head.slice(0, 64)}`, (value) => parseNumber('size', value))
      return { size, root: head.slice(64), publisher: `0x${publisher.slice(24)}` }
    },

    findCheckpoints({ contract: address, id, size, sinceMs }) {
      return searchLogs(anchored, { address, topics: [checkpointTopic, id, toSizeTopic(size)], sinceMs })
    },

    async getHead() {
      // In this order, so that the head isn't below the finalized block. Behind a balancer it still can be.
      const reported = await getFinalized()
      const { number } = await getLatestBlock()
      // Keeps the last finalized block, because one of the nodes behind a balancer may not report it.
      const known = reported ?? finalized
      finalized = known === undefined ? undefined : Math.min(known, number)
      return { number, finalized }
    },

    async getBlockHash(number) {
      const block = await getBlock(toQuantity(number))
      if (block !== undefined && block.number !== number) throw unavailable('eth_getBlockByNumber', 'another block')
      return block?.hash
    },

    async findEvents({ proofs, sinceMs }) {
      const toWord = (wallet: Hex) => `0x${wallet.slice(2).toLowerCase().padStart(64, '0')}`
      const wallets = [...new Set(proofs.map(({ wallet }) => toWord(wallet)))]
      const topics = [attestationPublishedTopic, wallets, proofs.map(({ txHash }) => txHash)]
      const wanted = new Set(proofs.map(toKey))
      const events = await searchLogs(published, { address: contract, topics, sinceMs })
      // A filter with two lists also matches one wallet with another wallet's transaction.
      return events.filter((event) => wanted.has(toKey(event)))
    },
  }
}

function toKey({ wallet, txHash }: Pick<AttestationPublished, 'wallet' | 'txHash'>): string {
  return `${wallet}/${txHash}`.toLowerCase()
}

function toQuantity(number: number): Hex {
  return `0x${number.toString(16)}`
}

function parseAnswer<Value>(method: string, result: unknown, parse: (result: unknown) => Value): Value {
  try {
    return parse(result)
  } catch (error) {
    if (error instanceof ChainError) throw unavailable(method, error.details ?? 'malformed')
    throw error
  }
}

function parseBytes(value: unknown): string {
  if (typeof value === 'string' && /^0x(?:[0-9a-f]{2})*$/i.test(value)) return value.toLowerCase()
  throw new ChainError('chain_unavailable', { details: 'not bytes' })
}

function unavailable(method: string, details: string) {
  return new ChainError('chain_unavailable', { details: `${method}: ${details}` })
}

/** EIP-1474's limit exceeded, HTTP's 429 as a code, and internal errors of the node. */
function isBusy({ code, message }: NodeError): boolean {
  return [-32005, 429, -32603].includes(code) || /rate limit|too many requests|time(d )?out/i.test(message)
}

/** Limits time and size. Follows no redirects, because the answer must come from the configured host. */
function createPost(url: URL, parameters: { timeoutMs: number; maxAnswerBytes: number; fetch: typeof fetch }) {
  const { timeoutMs, maxAnswerBytes, fetch } = parameters
  const { username, password } = url
  const credentials = Buffer.from(`${decode(username)}:${decode(password)}`).toString('base64')
  const headers = {
    'content-type': 'application/json',
    ...(username === '' ? {} : { authorization: `Basic ${credentials}` }),
  }
  const target = Object.assign(new URL(url), { username: '', password: '' }).href
  return async (method: string, params: unknown[]): Promise<{ status: number; body: unknown }> => {
    const signal = AbortSignal.timeout(timeoutMs)
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    try {
      const response = await fetch(target, { method: 'POST', headers, body, redirect: 'error', signal })
      if (response.status >= 500) {
        await response.body?.cancel()
        throw unavailable(method, `status ${response.status}`)
      }
      return { status: response.status, body: tryParse(await readBounded(response.body, maxAnswerBytes)) }
    } catch (error) {
      if (error instanceof ChainError) throw error
      // Only the error's code, because its text can quote the URL.
      throw unavailable(method, isBodyTooLarge(error) ? 'too large' : signal.aborted ? 'timed out' : toErrno(error))
    }
  }
}

/** Undefined if it isn't JSON. */
function tryParse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'))
  } catch {
    return undefined
  }
}

function toErrno(error: unknown): string {
  const code = readCauseCode(error)
  return code === undefined ? 'no answer' : toPlainText(code)
}

/** Removes possible secrets from a node's text: every part of our URL, and any other URL. */
function createRedact(url: URL): (text: string) => string {
  const parts = [url.username, url.password, ...url.pathname.split('/'), ...url.searchParams.values(), url.host]
  const secrets = parts.flatMap((part) => [part, decode(part)]).filter((part) => part.length >= 4)
  return (text) =>
    secrets.reduce((rest, secret) => rest.replaceAll(secret, '***'), text).replace(/\b(?:https?|wss?):\/\/\S+/gi, '***')
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Replaces the platform's error, which quotes the URL. */
function parseUrl(rpcUrl: string): URL {
  const url = URL.parse(rpcUrl)
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new TypeError('invalid RPC URL: expected http or https')
  return url
}

function toContract(contract: Hex): Hex {
  if (!/^0x[0-9a-f]{40}$/i.test(contract))
    throw new TypeError('invalid contract address: expected 0x and 40 hex digits')
  return contract.toLowerCase() as Hex
}

function toAccount(privateKey: Hex): PrivateKeyAccount {
  try {
    if (/^0x[0-9a-f]{64}$/i.test(privateKey)) return privateKeyToAccount(privateKey)
  } catch {
    // Zero, or too large. The library's error may quote the key.
  }
  throw new TypeError('invalid publisher private key')
}

/**
 * Returns the last number up to `newest` that passes, or 0. All numbers up to it must pass, and none after it. Searches back from the newest
 * in growing steps, because many nodes have dropped old blocks.
 */
export async function findLast(newest: number, passes: (number: number) => Promise<boolean>): Promise<number> {
  let [low, high] = [newest, newest]
  for (let step = 1; low > 0 && !(await passes(low)); step *= 2) {
    high = low - 1
    low = Math.max(0, low - step)
  }
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (await passes(middle)) low = middle
    else high = middle - 1
  }
  return low
}
