import { type Hex, isPrefixedHex, ServiceError } from '@countersign/protocol'
import { numberToHex, type TransactionReceipt } from 'viem'
import type { ServiceClient } from '../client/ServiceClient.ts'
import { callNode, Eip1193Error, eip1193Codes, invalidParams } from './errors.ts'
import { isObject } from './parseTransaction.ts'

/** EIP-5792 §`wallet_getCallsStatus`. */
const statuses = { pending: 100, confirmed: 200, notSent: 400, reverted: 500, partial: 600 } as const

const VERSION = '2.0.0'
const MAX_CALLS = 32
const MAX_ID_LENGTH = 4_096
/** How many batches a browser remembers. */
const MAX_BATCHES = 100
/** A page that sends the next call writes at least this often. Otherwise it was closed. */
const CLOSED_MS = 120_000

type SentCall = { hash: Hex; slug: string }
type Batch = { id: string; calls: number; sent: SentCall[]; isOver: boolean; updatedMs: number }

/** The parameters of `wallet_sendCalls`, checked. `calls` are still the dapp's. */
type RequestedCalls = { id: string; from: Hex | undefined; calls: readonly Record<string, unknown>[] }

/** Sends one call of a batch. Throws an EIP-1193 error. */
type SendCall = (call: Record<string, unknown>) => Promise<SentCall>

/**
 * The batches of a wallet on one chain (EIP-5792). Calls are sent one after the other: each waits until the one before is mined, because it may
 * depend on it. The browser remembers batches across reloads.
 */
export function createCallBatches(client: ServiceClient) {
  const { chainId } = client.config
  const storageKey = `countersign:calls:${client.config.apiBaseUrl}:${chainId}`
  /** For pages without storage. */
  let memory = '[]'

  function list(): Batch[] {
    try {
      return JSON.parse(localStorage.getItem(storageKey) ?? memory)
    } catch {
      return JSON.parse(memory)
    }
  }

  function store(batch: Batch): void {
    const others = list().filter(({ id }) => id !== batch.id)
    memory = JSON.stringify([...others, { ...batch, updatedMs: Date.now() }].slice(-MAX_BATCHES))
    try {
      localStorage.setItem(storageKey, memory)
    } catch {
      // Storage is blocked or full.
    }
  }

  function find(params: unknown): Batch {
    const [id] = Array.isArray(params) ? (params as unknown[]) : []
    const batch = list().find((one) => one.id === id)
    if (batch === undefined) throw new Eip1193Error(eip1193Codes.unknownBatch, 'no batch has this id')
    return batch
  }

  function parse(params: unknown): RequestedCalls {
    const [request] = Array.isArray(params) ? (params as unknown[]) : []
    if (!isObject(request)) throw invalidParams('expected one object')
    const { version, id = crypto.randomUUID(), from, chainId: requested, atomicRequired, calls, capabilities } = request
    if (version !== VERSION) throw invalidParams(`expected version ${VERSION}`)
    if (typeof id !== 'string' || id.length > MAX_ID_LENGTH) throw invalidParams('expected an id of text')
    if (from !== undefined && !isPrefixedHex(from, 20)) throw invalidParams('from is not an address')
    if (!isChain(requested, chainId)) {
      throw new Eip1193Error(eip1193Codes.unsupportedChain, `the wallet is only on chain ${chainId}`)
    }
    if (atomicRequired === true) {
      throw new Eip1193Error(eip1193Codes.notAtomic, 'the wallet sends calls one after the other, not atomically')
    }
    if (!Array.isArray(calls) || calls.length === 0 || !calls.every(isObject)) throw invalidParams('expected calls')
    if (calls.length > MAX_CALLS) {
      throw new Eip1193Error(eip1193Codes.batchTooLarge, `more than ${MAX_CALLS} calls`)
    }
    for (const owner of [request, ...calls]) assertCapabilities(owner === request ? capabilities : owner.capabilities)
    if (list().some((batch) => batch.id === id)) {
      throw new Eip1193Error(eip1193Codes.duplicateId, 'another batch has this id')
    }
    return { id, from, calls: calls.map(({ to, data, value }) => ({ from, to, data, value })) }
  }

  /** Sends the calls after the first. Ends at the first that fails. */
  async function sendOthers(batch: Batch, calls: RequestedCalls['calls'], send: SendCall): Promise<void> {
    const keep = setInterval(() => store(batch), CLOSED_MS / 4)
    try {
      for (const call of calls) {
        const hash = batch.sent.at(-1)?.hash as Hex
        const receipt = await client.publicClient.waitForTransactionReceipt({ hash })
        if (receipt.status !== 'success') break
        batch.sent.push(await send(call))
        store(batch)
      }
    } catch {
      // The status shows how many calls were sent.
    } finally {
      clearInterval(keep)
      batch.isOver = true
      store(batch)
    }
  }

  return {
    parse,

    /** `wallet_sendCalls`: resolves when the first call was sent. If that fails, no batch exists. */
    async send({ id, calls: [first, ...others] }: RequestedCalls, send: SendCall): Promise<{ id: string }> {
      const sent = [await send(first as Record<string, unknown>)]
      const batch: Batch = { id, calls: others.length + 1, sent, isOver: others.length === 0, updatedMs: 0 }
      store(batch)
      if (others.length > 0) void sendOthers(batch, others, send)
      return { id }
    },

    /** `wallet_getCallsStatus`, with the proof of each sent call. */
    async getStatus(params: unknown) {
      const { id, calls, sent, isOver, updatedMs } = find(params)
      const receipts = (await Promise.all(sent.map(({ hash }) => findReceipt(client, hash)))).filter(
        (receipt) => receipt !== undefined,
      )
      const isOpen = !isOver && Date.now() - updatedMs < CLOSED_MS
      const succeeded = receipts.filter(({ status }) => status === 'success').length
      const status = toStatus({ calls, sent: sent.length, mined: receipts.length, succeeded, isOpen })
      return {
        version: VERSION,
        id,
        chainId: numberToHex(chainId),
        status,
        atomic: false,
        receipts: receipts.map(toReceipt),
        capabilities: { countersign: { slugs: sent.map(({ slug }) => slug) } },
      }
    },

    /** `wallet_showCallsStatus`: the page shows it. */
    assertKnown: (params: unknown) => void find(params),
  }
}

function isChain(requested: unknown, chainId: number): boolean {
  if (typeof requested !== 'string' || !/^0x[0-9a-fA-F]{1,16}$/.test(requested)) {
    throw invalidParams('expected a chainId in hex')
  }
  return BigInt(requested) === BigInt(chainId)
}

/** A capability that is not optional must be supported, and only the absence of atomicity is. */
function assertCapabilities(capabilities: unknown): void {
  if (capabilities === undefined) return
  if (!isObject(capabilities)) throw invalidParams('capabilities is not an object')
  const required = Object.keys(capabilities).find((name) => {
    const capability = capabilities[name]
    return !(isObject(capability) && capability.optional === true)
  })
  if (required === undefined) return
  throw new Eip1193Error(eip1193Codes.unsupportedCapability, `the wallet does not support ${required}`)
}

async function findReceipt(client: ServiceClient, hash: Hex): Promise<TransactionReceipt | undefined> {
  return callNode(() => client.publicClient.getTransactionReceipt({ hash })).catch((error: unknown) => {
    const cause = error instanceof Eip1193Error ? error.cause : error
    const name = (cause instanceof ServiceError ? cause.cause : cause) as Error | undefined
    if (name?.name === 'TransactionReceiptNotFoundError') return undefined
    throw error
  })
}

type Counts = { calls: number; sent: number; mined: number; succeeded: number; isOpen: boolean }

function toStatus({ calls, sent, mined, succeeded, isOpen }: Counts): number {
  if (mined < sent || (isOpen && sent < calls && succeeded === sent)) return statuses.pending
  if (succeeded === calls) return statuses.confirmed
  if (succeeded > 0) return statuses.partial
  return mined > 0 ? statuses.reverted : statuses.notSent
}

function toReceipt({ logs, status, blockHash, blockNumber, gasUsed, transactionHash }: TransactionReceipt) {
  return {
    logs: logs.map(({ address, data, topics }) => ({ address, data, topics })),
    status: status === 'success' ? '0x1' : '0x0',
    blockHash,
    blockNumber: numberToHex(blockNumber),
    gasUsed: numberToHex(gasUsed),
    transactionHash,
  }
}
