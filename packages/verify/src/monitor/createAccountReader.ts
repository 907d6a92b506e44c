import {
  type Authorization,
  fromHex,
  hashAuthorization,
  hashSignedAuthorization,
  isPlainObject,
  parseAuthorization,
  recoverPublicKey,
  ServiceError,
  toAddress,
  toPrefixedHex,
} from '@countersign/protocol'
import { getBlock, getTransaction, isHash, parseQuantity, type Rpc, toQuantity, unavailable } from '../createRpc.ts'

export type Head = { number: number; hash: string; time: Date }
export type MinedTransaction = { hash: string; nonce: number; blockNumber: number }

/** An account's transactions and authorizations in a block. */
export type AccountBlock = {
  hash: string
  time: Date
  transactions: readonly MinedTransaction[]
  /** EIP-7702 authorizations that the account signed, by their hashes in events. */
  authorizations: readonly { hash: string; nonce: number }[]
}

/** Reads one account from a node. Contradictory and malformed answers are `chain_unavailable`. */
export type AccountReader = ReturnType<typeof createAccountReader>

export function createAccountReader(rpc: Rpc, { address, chainId }: { address: string; chainId: number }) {
  const counts = new Map<number, number>()

  async function getOwnBlock(tag: string, isFull = false) {
    const { block, ...found } = await getBlock(rpc, tag, isFull)
    const what = `${rpc.host}: eth_getBlockByNumber`
    const number = parseQuantity(block.number, `${what}: number`)
    if (tag !== 'latest' && tag !== toQuantity(number)) throw unavailable(`${what} is another block`)
    return { ...found, number, transactions: block.transactions }
  }

  function readTransaction(value: unknown, what: string) {
    if (!isPlainObject(value) || !isHash(value.hash) || typeof value.from !== 'string') {
      throw unavailable(`${what} is not a transaction`)
    }
    const isOurs = value.from.toLowerCase() === address
    return { hash: value.hash.toLowerCase(), isOurs, nonce: parseQuantity(value.nonce, `${what}: nonce`), value }
  }

  return {
    async getHead(): Promise<Head> {
      const { number, hash, time } = await getOwnBlock('latest')
      return { number, hash, time }
    },

    async getBlock(blockNumber: number): Promise<AccountBlock> {
      const { hash, time, transactions } = await getOwnBlock(toQuantity(blockNumber), true)
      const what = `${rpc.host}: eth_getBlockByNumber: a transaction`
      if (!Array.isArray(transactions)) throw unavailable(`${what} list is not a list`)
      const all = transactions.map((item) => readTransaction(item, what))
      return {
        hash,
        time,
        transactions: all.filter(({ isOurs }) => isOurs).map(({ hash, nonce }) => ({ hash, nonce, blockNumber })),
        authorizations: all.flatMap(({ value }) => readAuthorizations(value.authorizationList, { address, chainId })),
      }
    },

    /** Undefined if it is not mined, or belongs to another account. */
    async getTransaction(txHash: string): Promise<MinedTransaction | undefined> {
      const found = await getTransaction(rpc, txHash)
      if (found?.blockNumber === undefined) return undefined
      const { hash, isOurs, nonce } = readTransaction(found.result, `${rpc.host}: eth_getTransactionByHash`)
      return isOurs ? { hash, nonce, blockNumber: found.blockNumber } : undefined
    },

    /** The number of nonces used up to and including a block. All counts of one run must be consistent. */
    async getCount(blockNumber: number): Promise<number> {
      const known = counts.get(blockNumber)
      if (known !== undefined) return known
      const result = await rpc.call('eth_getTransactionCount', [address, toQuantity(blockNumber)])
      const count = parseQuantity(result, `${rpc.host}: eth_getTransactionCount`)
      for (const [block, other] of counts) {
        if (block < blockNumber ? other > count : other < count) {
          throw contradiction(rpc, `it counts ${other} at block ${block} and ${count} at block ${blockNumber}`)
        }
      }
      counts.set(blockNumber, count)
      return count
    },

    /** `0x` if the account has no code. */
    async getCode(blockNumber: number): Promise<string> {
      const code = await rpc.call('eth_getCode', [address, toQuantity(blockNumber)])
      if (typeof code !== 'string' || !/^0x(?:[0-9a-f]{2})*$/i.test(code)) {
        throw unavailable(`${rpc.host}: eth_getCode is not hex`)
      }
      return code.toLowerCase()
    },

    contradiction: (details: string) => contradiction(rpc, details),
  }
}

function contradiction({ host }: Rpc, details: string) {
  return unavailable(`${host} contradicts itself: ${details}; all its answers about this wallet were ignored`)
}

/** The account's authorizations that can take effect on this chain. The chain ignores malformed ones too. */
function readAuthorizations(list: unknown, { address, chainId }: { address: string; chainId: number }) {
  if (!Array.isArray(list)) return []
  return list.flatMap((item) => {
    const read = readAuthorization(item)
    if (read === undefined || read.authority !== address) return []
    const isHere = read.authorization.chainId === chainId || read.authorization.chainId === 0
    return isHere ? [{ hash: read.hash, nonce: read.authorization.nonce }] : []
  })
}

function readAuthorization(item: unknown) {
  if (!isPlainObject(item)) return undefined
  const { r, s, yParity, v } = item
  try {
    const authorization: Authorization = parseAuthorization({
      chainId: parseQuantity(item.chainId, 'chainId'),
      address: item.address,
      nonce: parseQuantity(item.nonce, 'nonce'),
    })
    const parity = 27 + parseQuantity(yParity ?? v, 'yParity')
    const signature = fromHex(`${toWord(r)}${toWord(s)}${parity.toString(16)}`)
    const authority = toAddress(recoverPublicKey(hashAuthorization(authorization), signature))
    return { authorization, authority, hash: toPrefixedHex(hashSignedAuthorization(authorization, signature)) }
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}

function toWord(value: unknown): string {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{1,64}$/.test(value)) throw unavailable('not a word')
  return value.slice(2).toLowerCase().padStart(64, '0')
}
