import { attestationPublishedTopic, type Hex } from '@countersign/protocol'
import type { ChainLog } from './checkChain.ts'

/** An event's data, the text of a CID: offset, length, characters, padding. */
export function encodeCid(cid: string): string {
  const word = (value: number) => value.toString(16).padStart(64, '0')
  const characters = Buffer.from(cid).toString('hex')
  return `0x${word(32)}${word(cid.length)}${characters.padEnd(Math.ceil(characters.length / 64) * 64, '0')}`
}

/** The event of a contract that names a receipt of this wallet. */
export function createEvent(parameters: {
  contract: string
  wallet: Hex
  txHash: Hex
  cid: string
  blockTime: Date
}): ChainLog {
  const { contract, wallet, txHash, cid, blockTime } = parameters
  return {
    address: contract,
    topics: [attestationPublishedTopic, `0x${wallet.slice(2).padStart(64, '0')}`, txHash],
    data: encodeCid(cid),
    blockNumber: 12,
    blockTime,
  }
}
