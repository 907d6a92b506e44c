import { type ChainAccount, catchUp, type NodeRequest } from '@countersign/testing'
import { type Address, type Hash, type Hex, hexToBigInt, hexToNumber, numberToHex, parseGwei } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { type ChainJournal, ChainJournalError, type JournaledBlock } from './chainJournal.ts'

/** Stands between callers and the node, and shows no block that is not in the journal. */
export type ChainLedger = {
  /** Mines what is in the journal, then takes over the node. */
  attach(node: NodeRequest): Promise<void>
  request: NodeRequest
  /** Signs, sends and journals, with a nonce that no other transaction has. */
  transfer(parameters: { from: ChainAccount; to: Address; valueWei: bigint }): Promise<Hash>
  /** Waits for the blocks under way; takes no more. */
  end(): Promise<void>
}

/** The chain itself cannot or will not answer, whatever the node would say; the code is one of JSON-RPC. */
export class ChainLedgerError extends Error {
  override name = 'ChainLedgerError'
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** What does not change the chain. The node knows more, as setting balances, that no journal of transactions could repeat. */
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

  /** One after the other: which transaction made which block is then plain. */
  function queue<Result>(change: () => Promise<Result>): Promise<Result> {
    const run = last.then(() => {
      if (failure) throw failure
      if (isEnding) throw new ChainLedgerError(-32603, 'The chain is stopping')
      return change()
    })
    last = run.catch(() => {})
    return run
  }

  /** The block is on disk before the answer goes out. */
  async function mine(method: string, raw: Hex | null): Promise<unknown> {
    try {
      return await node(method, raw === null ? [] : [raw])
    } finally {
      try {
        const block = await readHead(node)
        // A refused transaction makes none.
        if (block.number > height) await journal.append({ ...block, raw })
        height = block.number
      } catch (error) {
        // From here on the node knows more than the journal.
        const reason = error instanceof Error ? error.message : 'unknown error'
        failure = new ChainLedgerError(-32603, `The chain cannot go on without its journal: ${reason}`)
      }
    }
  }

  async function request(method: string, params: unknown[]): Promise<unknown> {
    if (method === 'eth_sendRawTransaction') {
      const [raw] = params
      // Anything else the node refuses in its own words.
      return queue(() => (typeof raw === 'string' ? mine(method, raw as Hex) : node(method, params))).finally(
        assertSound,
      )
    }
    if (method === 'eth_sendTransaction') {
      throw new ChainLedgerError(-32004, 'This chain takes signed transactions alone: eth_sendRawTransaction')
    }
    // With a time of its own the chain would leave the clock.
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
          // The base fee of the next block is at most an eighth higher.
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

/** A block has the hash it had only if all before it and all in it is what it was. */
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
