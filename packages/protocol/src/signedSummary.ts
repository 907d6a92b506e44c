import type { Hex } from './hex.ts'
import type { Signed, TransactionSubject } from './subject.ts'

/** What of a signature stands in its owner's list, by kind; a transaction has no `kind`. Of an off-chain signature nothing is known. */
export type SignedSummary =
  | {
      kind?: undefined
      to: Hex
      /** Wei. */
      value: string
      /** At most its first 68 bytes. */
      data: Hex
      nonce: number
    }
  | {
      kind: 'authorization'
      /** The code that the wallet delegates to. */
      implementation: Hex
    }
  | { kind: 'off-chain' }
  | { kind: 'address' }

/** A selector and two words, such as the recipient and amount of a token transfer. Calldata can be long, and a list needs no more. */
export const SUMMARY_DATA_BYTES = 68

type Summarized =
  | { kind: 'transaction'; subject: Pick<TransactionSubject, 'to' | 'value' | 'data' | 'nonce'> }
  | Exclude<Signed, { kind: 'transaction' }>

export function toSignedSummary({ kind, subject }: Summarized): SignedSummary {
  if (kind === 'off-chain' || kind === 'address') return { kind }
  if (kind === 'authorization') return { kind, implementation: subject.address }
  const { to, value, data, nonce } = subject
  return { to, value, data: data.slice(0, 2 + 2 * SUMMARY_DATA_BYTES) as Hex, nonce }
}
