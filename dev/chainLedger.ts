import { type ChainAccount, catchUp, type NodeRequest } from '@countersign/testing'
import { type Address, type Hash, type Hex, hexToBigInt, hexToNumber, numberToHex, parseGwei } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { type ChainJournal, ChainJournalError, type JournaledBlock } from './chainJournal.ts'

/** Sits between callers and the node, and hides blocks that are not in the journal. */
export type ChainLedger = {
  /** Mines the blocks of the journal, then owns the node. */
  attach(node: NodeRequest): Promise<void>
  request: NodeRequest
  /** Signs, sends and journals a transaction, with a unique nonce. */
  transfer(parameters: { from: ChainAccount; to: Address; valueWei: bigint }): Promise<Hash>
  /** Waits for the current blocks and rejects new ones. */
  end(): Promise<void>
}

/** An answer of the chain itself instead of the node's. The code is a JSON-RPC error code. */
export class ChainLedgerError extends Error {
  override name = 'ChainLedgerError'
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** Methods that don't change the chain. The node has others, such as setting balances, that a journal of transactions could not repeat. */
const READING = /^(?:eth|net|web3)_|^debug_trace/
const TIP_WEI = parseGwei('1')

export type CreateChainLedgerParameters = { journal: ChainJournal; path: string; chainId: number }

export function createChainLedger({ journal, path, chainId }: CreateChainLedgerParameters): ChainLedger {
  let node: NodeRequest = async () => {
    throw new ChainLedgerError(-32603, 'The chain has not started')
  }
  let height = 0
  let last: Promise<unknown> = Promise.resolve()
  let isEnding = false
  let failure: ChainLedgerError | undefined

  /** One at a time, so that each block belongs to one transaction. */
  function queue<Result>(change: () => Promise<Result>): Promise<Result> {
    const run = last.then(() => {
      if (failure) throw failure
      if (isEnding) throw new ChainLedgerError(-32603, 'The chain is stopping')
      return change()
    })
    last = run.catch(() => {})
    return run
  }

  /** The block is on disk before the caller gets its answer. */
  async function mine(method: string, raw: Hex | null): Promise<unknown> {
    try {
      return await node(method, raw === null ? [] : [raw])
    } finally {
      try {
        const block = await readHead(node)
        // A rejected transaction makes no block.
        if (block.number > height) await journal.append({ ...block, raw })
        height = block.number
      } catch (error) {
        // From here on the node is ahead of the journal.
        const reason = error instanceof Error ? error.message : 'unknown error'
        failure = new ChainLedgerError(-32603, `The chain stopped because its journal failed: ${reason}`)
      }
    }
  }

  async function request(method: string, params: unknown[]): Promise<unknown> {
    if (method === 'eth_sendRawTransaction') {
      const [raw] = params
      // The node's own error.
      return queue(() => (typeof raw === 'string' ? mine(method, raw as Hex) : node(method, params))).finally(
        assertSound,
      )
    }
    if (method === 'eth_sendTransaction') {
      throw new ChainLedgerError(-32004, 'This chain accepts only signed transactions: eth_sendRawTransaction')
    }
    // A time that a caller sets would differ from the clock.
    if (method === 'evm_mine' && params.length === 0) return queue(() => mine(method, null)).finally(assertSound)
    if (!READING.test(method)) throw new ChainLedgerError(-32004, `Method ${method} is not supported`)
    const answer = await node(method, params).finally(() => last)
    assertSound()
    return answer
  }

  function assertSound() {
    if (failure) throw failure
  }

  return {
    async attach(given) {
      for (const block of journal.blocks) await replay(given, block, path)
      height = journal.blocks.length
      await catchUp(given)
      node = given
    },
    request,
    transfer: ({ from, to, valueWei }) =>
      queue(async () => {
        const [nonce, block, gas] = (await Promise.all([
          node('eth_getTransactionCount', [from.address, 'latest']),
          node('eth_getBlockByNumber', ['latest', false]),
          node('eth_estimateGas', [{ from: from.address, to, value: numberToHex(valueWei) }]),
        ])) as [Hex, { baseFeePerGas: Hex }, Hex]
        const raw = await privateKeyToAccount(from.privateKey).signTransaction({
          type: 'eip1559',
          chainId,
          nonce: hexToNumber(nonce),
          to,
          value: valueWei,
          gas: hexToBigInt(gas),
          // The next block's base fee is at most an eighth higher.
          maxFeePerGas: hexToBigInt(block.baseFeePerGas) * 2n + TIP_WEI,
          maxPriorityFeePerGas: TIP_WEI,
        })
        return (await mine('eth_sendRawTransaction', raw)) as Hash
      }).finally(assertSound),
    async end() {
      isEnding = true
      await last
    },
  }
}

/** A block has the same hash only if it and all earlier blocks are identical. */
async function replay(node: NodeRequest, block: JournaledBlock, path: string) {
  let actual: Omit<JournaledBlock, 'raw'>
  try {
    await node('evm_setNextBlockTimestamp', [block.timestamp])
    if (block.raw === null) await node('evm_mine', [])
    else await node('eth_sendRawTransaction', [block.raw])
    actual = await readHead(node)
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'unknown error'
    throw new ChainJournalError(path, `cannot be replayed at block ${block.number}: ${reason}`)
  }
  if (actual.number !== block.number || actual.hash !== block.hash) {
    throw new ChainJournalError(path, `replays to another block ${block.number}`)
  }
}

async function readHead(node: NodeRequest): Promise<Omit<JournaledBlock, 'raw'>> {
  const block = (await node('eth_getBlockByNumber', ['latest', false])) as { number: Hex; timestamp: Hex; hash: Hash }
  return { number: hexToNumber(block.number), timestamp: hexToNumber(block.timestamp), hash: block.hash }
}
