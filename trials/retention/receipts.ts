import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'

export type ReceiptVersion = 1 | 2

/** Real receipts, each with the hash of another transaction in it: of the real size, and no two the same. */
export type Receipts = {
  length: number
  toBytes(index: number): Uint8Array<ArrayBuffer>
  /** The same as SQL of the number `i`, so that a million of them need not be sent. */
  sql: string
}

const FILES = { 1: 'golden/receipt.json', 2: 'golden-v2/transaction/attestation.json' } as const

export function createReceipts(version: ReceiptVersion): Receipts {
  const file = new URL(`../../packages/receipt/spec/${FILES[version]}`, import.meta.url)
  const text = readFileSync(file, 'utf8')
  const digits = /"txHash":"0x([0-9a-f]{64})"/.exec(text)?.[1]
  if (digits === undefined) throw new Error('the golden receipt has no hash of a transaction')
  const parts = text.split(digits)
  const toBytes = (index: number) => new Uint8Array(Buffer.from(parts.join(hash('sha256', `tx${index}`))))
  const literal = text.replaceAll("'", "''")
  return {
    length: Buffer.byteLength(text),
    toBytes,
    sql: `convert_to(replace('${literal}', '${digits}', encode(sha256(convert_to('tx' || i, 'UTF8')), 'hex')), 'UTF8')`,
  }
}
