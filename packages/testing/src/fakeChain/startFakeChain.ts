import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AttestationPublished, type Hex, parseJson, readBounded } from '@countersign/protocol'
import { privateKeyToAccount } from 'viem/accounts'
import { listen } from '../listen.ts'
import { CONTRACT, createFakeContract } from './contract.ts'
import { createLedger } from './ledger.ts'
import { createRpcMethods, type FakeChainLimits, TIP } from './rpcMethods.ts'
import { intrinsicGas, lower, RpcError, readTransaction } from './transaction.ts'

/** How a node can misbehave. */
export type FakeChainFault =
  /** Resets every connection, before it does anything. */
  | 'down'
  /** Does what it is asked at once, and answers late. */
  | 'slow'
  /** Answers 500, and does nothing. */
  | 'error'
  /** Takes a transaction into its mempool, then resets the connection. Other requests are not touched. */
  | 'reset-after-accept'
  /** Answers bytes that are no JSON, and does nothing. */
  | 'garbage'
  /** Does what it is asked, and ends in the middle of its JSON. */
  | 'truncated'
  /** Answers 16 MiB, and does nothing. */
  | 'oversized'
  /** Takes a transaction, and answers the hash of another. Other requests are not touched. */
  | 'wrong-hash'
  /** Has no receipts, though the transactions are mined. Other requests are not touched. */
  | 'no-receipts'
  /** Has receipts of what waits in its mempool, in a block that does not exist. Other requests are not touched. */
  | 'lies-mined'

type FakeChainFaultOptions = {
  /** For `slow`. */
  delayMs?: number
  /** Heals after so many requests that it touched. Unset: never. */
  count?: number
  /** Touches only HTTP requests with one of these methods. Unset: any. */
  methods?: readonly string[]
}

export type FakeChainEvent = AttestationPublished & { blockNumber: number; blockHash: Hex; transactionHash: Hex }

export type StartFakeChainParameters = {
  /** The account that may publish. Unset: hardhat's first. */
  publisher?: Hex
  /** Blocks from the newest to the finalized one. Unset: 8; `none`: a chain without finality. */
  finalityDepth?: number | 'none'
  /** Refuses what pays less than the base fee, as sequencers do. Unset: that waits in the mempool. */
  checksBaseFee?: boolean
  now?: () => number
}

type SendFromElsewhereParameters = {
  privateKey: Hex
  /** Unset: the account's next. */
  nonce?: number
  /** Unset: the account itself. */
  to?: Hex
  data?: Hex
}

export type FakeChain = Awaited<ReturnType<typeof startFakeChain>>

type Question = { id?: unknown; method?: unknown; params?: unknown }

const CHAIN_ID = 31_337
const MAX_BODY_BYTES = 4_194_304

/**
 * A chain with ServiceAttestations on loopback: transactions are parsed, checked and executed for real, after geth's rules and
 * in its words; blocks come on command, and everything that can go wrong goes wrong on command.
 *
 * @example
 * const chain = await startFakeChain({ publisher })
 * chain.setFault('reset-after-accept', { count: 1 })
 * chain.mine()
 * chain.reorg(1)
 */
export async function startFakeChain(parameters: StartFakeChainParameters = {}) {
  const { finalityDepth = 8, checksBaseFee = false, now = Date.now } = parameters
  const contract = createFakeContract(lower(parameters.publisher ?? '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'))
  const ledger = createLedger({ chainId: CHAIN_ID, contract, checksBaseFee, now })
  const { blocks } = ledger
  const forgotten = new Map<Hex, { andEvents: boolean }>()
  const limits: FakeChainLimits = {}
  const methods = createRpcMethods({ chainId: CHAIN_ID, contract, ledger, finalityDepth, isFault, forgotten, limits })
  const requests: Record<string, number> = {}
  const timers = new Set<NodeJS.Timeout>()
  let fault: FakeChainFault | undefined
  let faultOptions: FakeChainFaultOptions = {}
  let faultsLeft = Number.POSITIVE_INFINITY

  /** Whether the fault is on for what is asked now; this time counts. */
  function isFault(...faults: FakeChainFault[]): boolean {
    if (fault === undefined || !faults.includes(fault) || faultsLeft <= 0) return false
    faultsLeft -= 1
    return true
  }

  async function answerOne(question: Question) {
    const { id = null, method, params = [] } = question ?? {}
    const handler = typeof method === 'string' && Object.hasOwn(methods, method) ? methods[method] : undefined
    try {
      if (handler === undefined) throw new RpcError(-32601, `the method ${String(method)} does not exist`)
      if (!Array.isArray(params)) throw new RpcError(-32602, 'params must be a list')
      return { jsonrpc: '2.0', id, result: await handler(params) }
    } catch (error) {
      const { code, message, data } = error instanceof RpcError ? error : new RpcError(-32602, 'invalid argument')
      return { jsonrpc: '2.0', id, error: { code, message, ...(data === undefined ? {} : { data }) } }
    }
  }

  async function answerAll(body: unknown) {
    if (!Array.isArray(body)) return await answerOne(body as Question)
    if (body.length === 0) return { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'empty batch' } }
    const answers: unknown[] = []
    for (const item of body) answers.push(await answerOne(item))
    return answers
  }

  /** The methods that are asked for, which are counted. */
  function count(body: unknown): string[] {
    const asked = [body].flat().map((item) => String((item as Question | undefined)?.method))
    for (const method of asked) requests[method] = (requests[method] ?? 0) + 1
    return asked
  }

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const body = parseBody(await readBounded(request, MAX_BODY_BYTES))
    const asked = count(body)
    const isTouched = faultOptions.methods === undefined || asked.some((item) => faultOptions.methods?.includes(item))
    const isHit = (...faults: FakeChainFault[]) => isTouched && isFault(...faults)
    if (isHit('down')) return void request.socket.resetAndDestroy()
    if (isHit('error')) return send(response, 500, '{"error":"internal"}')
    if (isHit('garbage')) return send(response, 200, randomBytes(512).toString('latin1'))
    if (isHit('oversized')) return send(response, 200, JSON.stringify('0'.repeat(16_777_216)))
    const delayMs = isHit('slow') ? (faultOptions.delayMs ?? 0) : undefined
    const text = JSON.stringify(await answerAll(body))
    if (asked.includes('eth_sendRawTransaction') && isHit('reset-after-accept')) {
      return void request.socket.resetAndDestroy()
    }
    if (isHit('truncated')) return send(response, 200, text.slice(0, text.length / 2))
    if (delayMs === undefined) return send(response, 200, text)
    const timer = setTimeout(() => {
      timers.delete(timer)
      send(response, 200, text)
    }, delayMs)
    timers.add(timer)
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => request.socket.destroy())
  })
  const { url, stop } = await listen(server)
  let isStopped = false

  return {
    url,
    /**
     * Answers a request without the way over the network, which costs ten times as much as the answer. While there is a fault, and once
     * it is stopped, over the network all the same.
     */
    async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
      if (fault !== undefined || isStopped) return fetch(input, init)
      const body = parseBody(Buffer.from(String(init?.body)))
      count(body)
      return new Response(JSON.stringify(await answerAll(body)))
    },
    chainId: CHAIN_ID,
    contract: CONTRACT,
    get head() {
      const { number, hash } = ledger.head()
      return { number, hash }
    },
    /** Requests so far by method, those in batches too, whatever the answer was. */
    get requests(): Readonly<Record<string, number>> {
      return { ...requests }
    },
    /** Mines what can be mined, block after block; empty blocks too. */
    mine(count = 1) {
      for (let index = 0; index < count; index++) ledger.mineOne()
    },
    /**
     * Replaces the last `depth` blocks by `depth + 1` empty ones. Their transactions wait in the mempool again (`all`), or are
     * gone (`none`).
     */
    reorg: (depth: number, { keep = 'all' }: { keep?: 'all' | 'none' } = {}) => ledger.reorg(depth, keep),
    /** Takes a transaction out of the mempool; false where it is not in there. */
    dropTransaction: ledger.drop,
    /** Of blocks from now on. What pays less and is in the mempool stays there. */
    setBaseFee: ledger.setBaseFee,
    /** Unset, an account has 10,000 ether to start with. */
    setBalance: (account: Hex, wei: bigint) => ledger.setBalance(lower(account), wei),
    /** From now on this account alone publishes. */
    setPublisher(account: Hex) {
      contract.publisher = lower(account)
    },
    revertFor: contract.revertFor,
    /** While held, blocks are empty. */
    holdMempool: ledger.hold,
    /** From the next request on; without a fault it behaves again. */
    setFault(next?: FakeChainFault, options: FakeChainFaultOptions = {}) {
      fault = next
      faultOptions = options
      faultsLeft = options.count ?? Number.POSITIVE_INFINITY
    },
    /**
     * As a node whose index lags: knows neither this mined transaction nor its receipt, though its nonce is used; with
     * `andEvents` its events neither. Until the result is called.
     */
    forget(hash: Hex, { andEvents = false } = {}) {
      forgotten.set(lower(hash), { andEvents })
      return () => void forgotten.delete(lower(hash))
    },
    setLimits: (next: FakeChainLimits) => void Object.assign(limits, next),
    /** Another process with the same key: mines a transaction in a block of its own, instead of one that waits with its nonce. */
    async sendFromElsewhere({ privateKey, nonce, to, data = '0x' }: SendFromElsewhereParameters): Promise<Hex> {
      const account = privateKeyToAccount(privateKey)
      const from = lower(account.address)
      const next = ledger.nonceOf(from)
      if (nonce !== undefined && nonce !== next) throw new RangeError(`the next nonce is ${next}`)
      const raw = await account.signTransaction({
        type: 'eip1559',
        chainId: CHAIN_ID,
        nonce: next,
        to: to ?? from,
        data,
        gas: to === undefined ? intrinsicGas(data) : 1_000_000n,
        maxFeePerGas: 2n * ledger.baseFee + TIP,
        maxPriorityFeePerGas: TIP,
      })
      const transaction = await readTransaction(raw, CHAIN_ID)
      if (ledger.nonceOf(from) !== next) throw new RangeError('the nonce was used meanwhile')
      ledger.mineDirectly(transaction)
      return transaction.hash
    },
    /** Of the canonical chain, in order. */
    events: (): FakeChainEvent[] =>
      blocks.flatMap(({ number: blockNumber, hash: blockHash, mined }) =>
        mined.flatMap(({ transaction: { hash: transactionHash }, logs }) =>
          logs.map(({ event }) => ({ ...event, blockNumber, blockHash, transactionHash })),
        ),
      ),
    /** Of the canonical chain, in order. */
    transactions: () =>
      blocks.flatMap(({ number: blockNumber, hash: blockHash, mined }) =>
        mined.map(({ transaction, isSuccess, gasUsed }) => ({
          ...transaction,
          blockNumber,
          blockHash,
          isSuccess,
          gasUsed,
        })),
      ),
    /** In the order of arrival. */
    mempool: () => ledger.pool.map((transaction) => ({ ...transaction })),
    async stop() {
      isStopped = true
      for (const timer of timers) clearTimeout(timer)
      await stop()
    },
  }
}

/** Undefined where it is no JSON. */
function parseBody(bytes: Uint8Array): unknown {
  try {
    return parseJson(bytes)
  } catch {
    return undefined
  }
}

function send(response: ServerResponse, status: number, body: string) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body)
}
