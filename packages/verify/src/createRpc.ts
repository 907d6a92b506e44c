import { isPlainObject, isPrefixedHex, parseJson } from '@countersign/protocol'
import { VerifierError } from './errors.ts'
import type { FetchBytes } from './fetchBytes.ts'

/** A JSON-RPC 2.0 client of a chain's node. */
export type Rpc = {
  host: string
  call(method: string, params: readonly unknown[]): Promise<unknown>
  /** Requested once. */
  getChainId(): Promise<number>
}

const MAX_ANSWER_BYTES = 1_048_576

/** The node rejects the request: it lacks the method or the state, or limits the block range. */
export class RpcRefusal extends VerifierError {
  override name = 'RpcRefusal'
  constructor(details: string, cause?: unknown) {
    super('chain_unavailable', 'the chain is unavailable', { details, cause })
  }
}

export type CreateRpcParameters = {
  url: string
  /** A full block is larger than most responses. */
  maxAnswerBytes?: number
}

export function createRpc(
  { fetchBytes }: { fetchBytes: FetchBytes },
  { url, maxAnswerBytes = MAX_ANSWER_BYTES }: CreateRpcParameters,
): Rpc {
  const { host } = new URL(url)
  let nextId = 1
  let chainId: Promise<number> | undefined

  async function call(method: string, params: readonly unknown[]): Promise<unknown> {
    const id = nextId++
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params })
    let bytes: Uint8Array
    try {
      bytes = await fetchBytes({ url, maxBytes: maxAnswerBytes, accept: 'application/json', body })
    } catch (error) {
      if (!(error instanceof VerifierError)) throw error
      if (isRefusal(error)) throw new RpcRefusal(error.details ?? error.message, error)
      throw unavailable(error.details ?? error.message, error)
    }
    return readAnswer(bytes, { id, host, method })
  }

  return {
    host,
    call,
    getChainId() {
      chainId ??= call('eth_chainId', []).then((result) => parseQuantity(result, `${host}: eth_chainId`))
      return chainId
    },
  }
}

/** Limits the requests, for a node with endless answers. */
export function limitRpc(rpc: Rpc, maxRequests: number): Rpc {
  let requests = 0
  return {
    ...rpc,
    call(method, params) {
      requests += 1
      if (requests > maxRequests) throw unavailable(`${rpc.host} would get more than ${maxRequests} requests`)
      return rpc.call(method, params)
    },
  }
}

function readAnswer(bytes: Uint8Array, { id, host, method }: { id: number; host: string; method: string }): unknown {
  let answer: unknown
  try {
    answer = parseJson(bytes)
  } catch (cause) {
    throw unavailable(`${host} returned no JSON for ${method}`, cause)
  }
  if (!isPlainObject(answer) || answer.jsonrpc !== '2.0' || answer.id !== id) {
    throw unavailable(`${host} returned no JSON-RPC for ${method}`)
  }
  if (isPlainObject(answer.error)) {
    const { code, message } = answer.error
    throw new RpcRefusal(`${host} rejected ${method}: ${String(message).slice(0, 200)} (${String(code).slice(0, 20)})`)
  }
  if (!Object.hasOwn(answer, 'result')) throw unavailable(`${host} returned no result for ${method}`)
  return answer.result
}

/** Some nodes reject requests only by status. 429 is temporary. */
function isRefusal({ status = 0 }: VerifierError): boolean {
  return status >= 400 && status < 500 && status !== 429
}

/** Parses an Ethereum JSON-RPC quantity: 0x and hex digits without leading zeros. */
export function parseQuantity(value: unknown, what: string): number {
  const isQuantity = typeof value === 'string' && /^0x(?:0|[1-9a-fA-F][0-9a-fA-F]{0,13})$/.test(value)
  const number = isQuantity ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(number)) throw unavailable(`${what} is not a number`)
  return number
}

export function toQuantity(value: number): string {
  return `0x${value.toString(16)}`
}

export function isHash(value: unknown): value is string {
  return isPrefixedHex(value, 32)
}

/** Gets a block by number or tag. `isFull` includes whole transactions. */
export async function getBlock(rpc: Rpc, tag: string, isFull = false) {
  const what = `${rpc.host}: eth_getBlockByNumber`
  const block = await rpc.call('eth_getBlockByNumber', [tag, isFull])
  if (!isPlainObject(block) || !isHash(block.hash)) throw unavailable(`${what} is not a block`)
  const time = new Date(parseQuantity(block.timestamp, `${what}: timestamp`) * 1000)
  if (Number.isNaN(time.getTime())) throw unavailable(`${what}: timestamp is not a time`)
  return { hash: block.hash.toLowerCase(), time, block }
}

/** Undefined if the node doesn't know the transaction. `blockNumber` is undefined until it is mined. */
export async function getTransaction(rpc: Rpc, txHash: string) {
  const what = `${rpc.host}: eth_getTransactionByHash`
  const result = await rpc.call('eth_getTransactionByHash', [txHash])
  if (result === null) return undefined
  if (!isPlainObject(result) || !isHash(result.hash)) throw unavailable(`${what} is not a transaction`)
  if (result.hash.toLowerCase() !== txHash) throw unavailable(`${what} is another transaction`)
  const isMined = result.blockNumber !== null
  return { result, blockNumber: isMined ? parseQuantity(result.blockNumber, `${what}: blockNumber`) : undefined }
}

export function unavailable(details: string, cause?: unknown) {
  return new VerifierError('chain_unavailable', 'the chain is unavailable', { details, cause })
}
