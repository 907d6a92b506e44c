import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import {
  type AttestationPublished,
  type CheckpointEvent,
  type Hex,
  parseJson,
  readBounded,
} from '@countersign/protocol'
import { privateKeyToAccount } from 'viem/accounts'
import { listen } from '../listen.ts'
import { createExecute, type Log } from './contract.ts'
import { createLedger } from './ledger.ts'
import { createLogWitness, LOG_WITNESS } from './logWitness.ts'
import { createRpcMethods, type FakeChainLimits, TIP } from './rpcMethods.ts'
import { createServiceAttestations, SERVICE_ATTESTATIONS } from './serviceAttestations.ts'
import { intrinsicGas, lower, RpcError, readTransaction } from './transaction.ts'

/** Ways in which a node can misbehave. */
export type FakeChainFault =
  /** Resets every connection without processing the request. */
  | 'down'
  /** Processes requests immediately but answers late. */
  | 'slow'
  /** Answers 500 without processing the request. */
  | 'error'
  /** Accepts a transaction into its mempool, then resets the connection. Affects no other requests. */
  | 'reset-after-accept'
  /** Answers with invalid JSON without processing the request. */
  | 'garbage'
  /** Processes the request, but its answer ends in the middle of the JSON. */
  | 'truncated'
  /** Answers with 16 MiB without processing the request. */
  | 'oversized'
  /** Accepts a transaction but returns another hash. Affects no other requests. */
  | 'wrong-hash'
  /** Returns no receipts for mined transactions. Affects no other requests. */
  | 'no-receipts'
  /** Returns receipts for pending transactions, in a nonexistent block. Affects no other requests. */
  | 'lies-mined'

type FakeChainFaultOptions = {
  /** Delay for `slow`. */
  delayMs?: number
  /** Ends after this many affected requests. Default: never. */
  count?: number
  /** Affects only HTTP requests with one of these methods. Default: all. */
  methods?: readonly string[]
}

type EventPlace = { blockNumber: number; blockHash: Hex; transactionHash: Hex }

export type FakeChainEvent = AttestationPublished & EventPlace

export type FakeChainCheckpoint = CheckpointEvent & EventPlace

export type StartFakeChainParameters = {
  /** The account that may publish. Default: Hardhat's first. */
  publisher?: Hex
  /** Logs that are registered with LogWitness. Default publisher: the same account. Default: none. */
  logs?: readonly { id: Hex; publisher?: Hex }[]
  /** Blocks from the newest to the finalized one. Default: 8. `none`: a chain without finality. */
  finalityDepth?: number | 'none'
  /** Rejects transactions below the base fee, as sequencers do. Default: they wait in the mempool. */
  checksBaseFee?: boolean
  now?: () => number
}

type SendFromElsewhereParameters = {
  privateKey: Hex
  /** Default: the account's next nonce. */
  nonce?: number
  /** Default: the account itself. */
  to?: Hex
  data?: Hex
}

export type FakeChain = Awaited<ReturnType<typeof startFakeChain>>

type Question = { id?: unknown; method?: unknown; params?: unknown }

const CHAIN_ID = 31_337
const MAX_BODY_BYTES = 4_194_304

/**
 * Starts a chain with ServiceAttestations and LogWitness on loopback. It parses, checks and executes transactions by geth's rules and with its error
 * messages. Tests control when blocks are mined and which faults occur.
 *
 * @example
 * const chain = await startFakeChain({ publisher })
 * chain.setFault('reset-after-accept', { count: 1 })
 * chain.mine()
 * chain.reorg(1)
 */
export async function startFakeChain(parameters: StartFakeChainParameters = {}) {
  const { finalityDepth = 8, checksBaseFee = false, now = Date.now } = parameters
  const publisher = lower(parameters.publisher ?? '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266')
  const attestations = createServiceAttestations(publisher)
  const logWitness = createLogWitness()
  for (const log of parameters.logs ?? []) logWitness.registerLog(log.id, log.publisher ?? publisher)
  const contracts = new Map([
    [SERVICE_ATTESTATIONS, attestations.contract],
    [LOG_WITNESS, logWitness.contract],
  ])
  const execute = createExecute(contracts)
  const ledger = createLedger({ chainId: CHAIN_ID, execute, checksBaseFee, now })
  const { blocks } = ledger
  const forgotten = new Map<Hex, { andEvents: boolean }>()
  const limits: FakeChainLimits = {}
  const methods = createRpcMethods({
    chainId: CHAIN_ID,
    execute,
    hasCode: (account) => contracts.has(account),
    ledger,
    finalityDepth,
    isFault,
    forgotten,
    limits,
  })
  const requests: Record<string, number> = {}
  const timers = new Set<NodeJS.Timeout>()
  let fault: FakeChainFault | undefined
  let faultOptions: FakeChainFaultOptions = {}
  let faultsLeft = Number.POSITIVE_INFINITY

  /** Whether one of the faults applies to the current request. Counts the request. */
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

  /** Counts and returns the requested methods. */
  function count(body: unknown): string[] {
    const names = [body].flat().map((item) => String((item as Question | undefined)?.method))
    for (const method of names) requests[method] = (requests[method] ?? 0) + 1
    return names
  }

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const body = parseBody(await readBounded(request, MAX_BODY_BYTES))
    const names = count(body)
    const isTouched = faultOptions.methods === undefined || names.some((item) => faultOptions.methods?.includes(item))
    const isHit = (...faults: FakeChainFault[]) => isTouched && isFault(...faults)
    if (isHit('down')) return void request.socket.resetAndDestroy()
    if (isHit('error')) return send(response, 500, '{"error":"internal"}')
    if (isHit('garbage')) return send(response, 200, randomBytes(512).toString('latin1'))
    if (isHit('oversized')) return send(response, 200, JSON.stringify('0'.repeat(16_777_216)))
    const delayMs = isHit('slow') ? (faultOptions.delayMs ?? 0) : undefined
    const text = JSON.stringify(await answerAll(body))
    if (names.includes('eth_sendRawTransaction') && isHit('reset-after-accept')) {
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

  function listEvents<Event extends object>(toEvent: (log: Log) => Event | undefined): (Event & EventPlace)[] {
    return blocks.flatMap(({ number: blockNumber, hash: blockHash, mined }) =>
      mined.flatMap(({ transaction: { hash: transactionHash }, logs }) =>
        logs.flatMap((log) => {
          const event = toEvent(log)
          return event === undefined ? [] : [{ ...event, blockNumber, blockHash, transactionHash }]
        }),
      ),
    )
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => request.socket.destroy())
  })
  const { url, stop } = await listen(server)
  let isStopped = false

  return {
    url,
    /** Answers a request without the network, which would take ten times as long. Uses the network during a fault and after the stop. */
    async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
      if (fault !== undefined || isStopped) return fetch(input, init)
      const body = parseBody(Buffer.from(String(init?.body)))
      count(body)
      return new Response(JSON.stringify(await answerAll(body)))
    },
    chainId: CHAIN_ID,
    /** ServiceAttestations. */
    contract: SERVICE_ATTESTATIONS,
    logWitness: LOG_WITNESS,
    get head() {
      const { number, hash } = ledger.head()
      return { number, hash }
    },
    /** Number of requests by method, including those in batches and failed ones. */
    get requests(): Readonly<Record<string, number>> {
      return { ...requests }
    },
    /** Mines blocks with all transactions that can be mined, or empty blocks. */
    mine(count = 1) {
      for (let index = 0; index < count; index++) ledger.mineOne()
    },
    /**
     * Replaces the last `depth` blocks with `depth + 1` empty ones. Their transactions return to the mempool (`all`) or are dropped (`none`).
     */
    reorg: (depth: number, { keep = 'all' }: { keep?: 'all' | 'none' } = {}) => ledger.reorg(depth, keep),
    /** Removes a transaction from the mempool. Returns false if it isn't there. */
    dropTransaction: ledger.drop,
    /** Sets the base fee of further blocks. Transactions below it stay in the mempool. */
    setBaseFee: ledger.setBaseFee,
    /** Default: 10,000 ether for every account. */
    setBalance: (account: Hex, wei: bigint) => ledger.setBalance(lower(account), wei),
    /** Makes this account the only one that may publish to ServiceAttestations. */
    setPublisher: (account: Hex) => attestations.setPublisher(lower(account)),
    /** Registers a log with LogWitness, or replaces its publisher. */
    registerLog: (id: Hex, account: Hex = publisher) => logWitness.registerLog(id, account),
    revertFor: attestations.revertFor,
    /** Keeps all transactions in the mempool: blocks are empty. */
    holdMempool: ledger.hold,
    /** Sets the fault for further requests. Undefined ends it. */
    setFault(next?: FakeChainFault, options: FakeChainFaultOptions = {}) {
      fault = next
      faultOptions = options
      faultsLeft = options.count ?? Number.POSITIVE_INFINITY
    },
    /**
     * Hides a mined transaction and its receipt, as a node with a lagging index does. Its nonce stays used. With `andEvents`, its events are
     * hidden too. Lasts until the returned function is called.
     */
    forget(hash: Hex, { andEvents = false } = {}) {
      forgotten.set(lower(hash), { andEvents })
      return () => void forgotten.delete(lower(hash))
    },
    setLimits: (next: FakeChainLimits) => void Object.assign(limits, next),
    /**
     * Simulates another process with the same key: mines a transaction in a separate block, in place of a pending one with the same nonce.
     */
    async sendFromElsewhere({ privateKey, nonce, to, data = '0x' }: SendFromElsewhereParameters): Promise<Hex> {
      const account = privateKeyToAccount(privateKey)
      const from = lower(account.address)
      const next = ledger.nonceOf(from)
      if (nonce !== undefined && nonce !== next) throw new RangeError(`expected nonce ${next}, got ${nonce}`)
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
      if (ledger.nonceOf(from) !== next) throw new RangeError(`nonce ${next} was used in the meantime`)
      ledger.mineDirectly(transaction)
      return transaction.hash
    },
    /** ServiceAttestations' events of the canonical chain in order. */
    events: (): FakeChainEvent[] => listEvents(({ published }) => published),
    /** LogWitness' events of the canonical chain in order. */
    checkpoints: (): FakeChainCheckpoint[] => listEvents(({ checkpoint }) => checkpoint),
    /** Transactions of the canonical chain in order. */
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
    /** Pending transactions in the order of arrival. */
    mempool: () => ledger.pool.map((transaction) => ({ ...transaction })),
    async stop() {
      isStopped = true
      for (const timer of timers) clearTimeout(timer)
      await stop()
    },
  }
}

/** Undefined for invalid JSON. */
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
