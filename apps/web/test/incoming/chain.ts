import type { Hex } from '@countersign/sdk'
import { HttpRequestError, RpcRequestError } from 'viem'
import type { Token } from '../../src/config.ts'
import type { IncomingChain } from '../../src/incoming/findPayments.ts'

export const me: Hex = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'
export const friend: Hex = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
export const token: Token = {
  chainId: 31337,
  address: `0x${'ab'.repeat(20)}`,
  symbol: 'TEST',
  decimals: 6,
  name: 'Test Token',
}

export type FakeBlock = {
  number: bigint
  transactions?: readonly { from?: Hex; to?: Hex; value: bigint; hasFailed?: boolean }[]
  /** Other changes of the balance, such as payments from contracts. */
  inner?: bigint
  transfers?: readonly { from?: Hex; to?: Hex; value: bigint; address?: Hex }[]
}

export type FakeChain = IncomingChain & {
  /** The called methods, in order. */
  asked: string[]
  head: bigint
  blocks: FakeBlock[]
}

/** A node with one account. Rejects queries for state older than `keptBlocks` and for logs of more than `logBlocks`. */
export function createFakeChain({
  head,
  blocks,
  keptBlocks = 1n << 60n,
  logBlocks = 1n << 60n,
}: {
  head: bigint
  blocks: FakeBlock[]
  keptBlocks?: bigint
  logBlocks?: bigint
}): FakeChain {
  const toHash = (number: bigint, index: number): Hex =>
    `0x${(number * 100n + BigInt(index)).toString(16).padStart(64, '0')}`
  const stateAt = (number: bigint) => {
    let [balance, nonce] = [10n ** 20n, 0]
    for (const { number: at, transactions = [], inner = 0n } of chain.blocks) {
      if (at > number) continue
      balance += inner
      for (const { from = friend, to = me, value, hasFailed } of transactions) {
        if (from === me) nonce += 1
        if (from === me) balance -= 21_000n
        if (to === me && !hasFailed) balance += value
        if (from === me && !hasFailed) balance -= value
      }
    }
    return { balance, nonce }
  }
  const readState = (method: string, blockNumber: bigint) => {
    chain.asked.push(method)
    if (chain.head - blockNumber > keptBlocks) throw refusal('missing trie node')
    return stateAt(blockNumber)
  }
  const chain = {
    asked: [] as string[],
    head,
    blocks,
    async getBlockNumber() {
      chain.asked.push('eth_blockNumber')
      return chain.head
    },
    async getBalance({ blockNumber }: { blockNumber: bigint }) {
      return readState('eth_getBalance', blockNumber).balance
    },
    async getTransactionCount({ blockNumber }: { blockNumber: bigint }) {
      return readState('eth_getTransactionCount', blockNumber).nonce
    },
    async getBlock({ blockNumber: number }: { blockNumber: bigint }) {
      chain.asked.push('eth_getBlockByNumber')
      const block = chain.blocks.find((one) => one.number === number)
      const transactions = (block?.transactions ?? []).map(({ from = friend, to = me, value }, index) => ({
        hash: toHash(number, index),
        from,
        to,
        value,
      }))
      return { timestamp: 1_700_000_000n + number * 12n, transactions }
    },
    async request({ params: [hash] }: { params: [Hex] }) {
      chain.asked.push('eth_getTransactionReceipt')
      const at = BigInt(hash)
      const transaction = chain.blocks.find(({ number }) => number === at / 100n)?.transactions?.[Number(at % 100n)]
      return { status: transaction?.hasFailed ? '0x0' : '0x1' }
    },
    async getLogs({ fromBlock, toBlock }: { fromBlock: bigint; toBlock: bigint }) {
      chain.asked.push('eth_getLogs')
      if (toBlock - fromBlock >= logBlocks) throw refusal('block range is too wide')
      return chain.blocks
        .filter(({ number }) => number >= fromBlock && number <= toBlock)
        .flatMap(({ number: blockNumber, transfers = [] }) =>
          transfers.map(({ from = friend, to = me, value, address = token.address }, logIndex) => ({
            address,
            blockNumber,
            logIndex,
            transactionHash: toHash(blockNumber, logIndex),
            args: { from, to, value },
          })),
        )
    },
  }
  return chain as unknown as FakeChain
}

export function refusal(message: string): RpcRequestError {
  return new RpcRequestError({ body: {}, url: 'https://rpc.test', error: { code: -32000, message } })
}

export function httpFailure(status?: number): HttpRequestError {
  return new HttpRequestError({ url: 'https://rpc.test', ...(status === undefined ? {} : { status }) })
}
