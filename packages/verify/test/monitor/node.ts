import type { SimulatedAttestation } from '@countersign/receipt/simulator'
import { type FakeAnchor, logWitness, toCheckpoint } from '../anchors.ts'
import { contract, type FakeIssue, signedAt, toLog } from '../issues.ts'
import { json } from '../network.ts'

export const stranger = `0x${'99'.repeat(20)}`

type FakeTransaction = { hash: string; from: string; nonce: number; authorizationList?: readonly unknown[] }
type FakeLog = Omit<ReturnType<typeof toLog>, 'address'> & { address: string }
type FakeBlock = { transactions: FakeTransaction[]; logs: FakeLog[]; code?: string }

const quantity = (value: number) => `0x${value.toString(16)}`
const hashOf = (number: number, fork: number) => `0x${(number * 1000 + fork + 1).toString(16).padStart(64, 'b')}`

/** A node of chain 31337 with one account and the contract, which can be pruned, limited, or lie. Its blocks are a minute apart. */
export function createFakeNode({ wallet }: { wallet: string }) {
  const blocks: FakeBlock[] = [{ transactions: [], logs: [] }]
  const asked: string[] = []
  const node = {
    blocks,
    asked,
    fork: 0,
    /** Earlier blocks have no state. */
    firstState: 0,
    maxLogBlocks: Number.POSITIVE_INFINITY,
    /** The number of newest blocks that are not final. */
    unsettled: 0,
    /** Responses that replace the node's; undefined uses the node's. */
    lie: (_method: string, _params: readonly unknown[]): unknown => undefined,
    mine(...transactions: FakeTransaction[]) {
      blocks.push({ transactions, logs: [] })
      return blocks.length - 1
    },
    rest(count: number) {
      for (let index = 0; index < count; index++) node.mine()
    },
    /** The event of an issue, in a separate block. */
    publish(issue: FakeIssue, changes: Readonly<Record<string, unknown>> = {}) {
      node.publishAll([issue], changes)
    },
    /** Events in one block. */
    publishAll(issues: readonly Pick<FakeIssue, 'receipt' | 'cid'>[], changes: Readonly<Record<string, unknown>> = {}) {
      const number = node.mine()
      const place = { blockNumber: quantity(number), blockHash: hashOf(number, node.fork) }
      for (const issue of issues) blocks[number]?.logs.push(toLog(issue, { ...place, ...changes }))
    },
    /** The checkpoint of an anchor, in a separate block. Returns its number. */
    anchor(anchor: FakeAnchor, changes: Readonly<Record<string, unknown>> = {}): number {
      const number = node.mine()
      const place = { blockNumber: quantity(number), blockHash: hashOf(number, node.fork) }
      blocks[number]?.logs.push({ ...toCheckpoint(anchor), ...place, ...changes })
      return number
    },
    answer(_url: URL, init: RequestInit): Response {
      const { id, method, params } = JSON.parse(String(init.body))
      asked.push(method)
      const result = node.lie(method, params) ?? toResult(method, params)
      return json(
        result instanceof Error ? { jsonrpc: '2.0', id, error: refusal(result) } : { jsonrpc: '2.0', id, result },
      )
    },
  }

  function countAt(number: number): number {
    const own = blocks.slice(0, number + 1).flatMap(({ transactions }) => transactions)
    const uses = own.flatMap(({ from, nonce, authorizationList = [] }) => [
      ...(from === wallet ? [nonce + 1] : []),
      ...authorizationList.map((item) => Number((item as { nonce: string }).nonce) + 1),
    ])
    return Math.max(0, ...uses)
  }

  function toTransaction({ nonce, ...rest }: FakeTransaction, blockNumber: number) {
    return { ...rest, nonce: quantity(nonce), blockNumber: quantity(blockNumber) }
  }

  function toResult(method: string, params: readonly unknown[]): unknown {
    const head = blocks.length - 1
    switch (method) {
      case 'eth_chainId':
        return '0x7a69'
      case 'eth_getBlockByNumber': {
        const tags: Record<string, number> = { latest: head, finalized: head - node.unsettled }
        const number = tags[String(params[0])] ?? Number(params[0])
        const seconds = Math.floor(signedAt.getTime() / 1000) + 60 * number
        const transactions = (blocks[number]?.transactions ?? []).map((item) => toTransaction(item, number))
        return { number: quantity(number), hash: hashOf(number, node.fork), timestamp: quantity(seconds), transactions }
      }
      case 'eth_getTransactionCount':
      case 'eth_getCode': {
        const number = Number(params[1])
        if (number < node.firstState) return new Error('missing trie node')
        return method === 'eth_getCode' ? (blocks[number]?.code ?? '0x') : quantity(countAt(number))
      }
      case 'eth_getTransactionByHash': {
        const number = blocks.findIndex(({ transactions }) => transactions.some(({ hash }) => hash === params[0]))
        const found = blocks[number]?.transactions.find(({ hash }) => hash === params[0])
        return found === undefined ? null : toTransaction(found, number)
      }
      case 'eth_getLogs': {
        const { fromBlock, toBlock: last, address, topics } = params[0] as Record<string, string>
        const toBlock = last === 'latest' ? head : last
        if (Number(toBlock) - Number(fromBlock) >= node.maxLogBlocks) return new Error('block range is too wide')
        const logs = blocks.slice(Number(fromBlock), Number(toBlock) + 1).flatMap((block) => block.logs)
        // Ignores other topics than the first, so that readers must filter.
        const isOurs = [address].flat().some((one) => one === contract || one === logWitness)
        return isOurs ? logs.filter((log) => log.topics[0] === topics?.[0]) : []
      }
    }
    return new Error('the method does not exist')
  }

  return node
}

/** An authorization as a transaction lists it. */
export function toItem({ receipt }: Pick<SimulatedAttestation, 'receipt'>) {
  if (receipt.kind !== 'authorization') throw new TypeError('another kind')
  const { chainId, address, nonce, signature } = receipt.subject
  const [r, s] = [signature.slice(2, 66), signature.slice(66, 130)]
  const yParity = Number(`0x${signature.slice(130)}`) - 27
  return {
    chainId: `0x${chainId.toString(16)}`,
    address,
    nonce: `0x${nonce}`,
    r: `0x${r}`,
    s: `0x${s}`,
    yParity: `0x${yParity}`,
  }
}

function refusal({ message }: Error) {
  return { code: -32000, message }
}
