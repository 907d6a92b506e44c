import type { TrustedRoot } from '@countersign/attestation'
import type { Anchors, ChainLog, CheckReceiptOptions, StepStatus } from '@countersign/receipt'

/* The messages of the line protocol (README.md). Bytes are base64. */

export type BlockRole = 'release' | 'batch' | 'coordinator' | 'collateral' | 'policy'

/** The values that a reader trusts, and their sources. */
export type Reader = {
  roots: readonly TrustedRoot[]
  mockEntropyKeys: readonly string[]
  anchors: Anchors
  policy?: NonNullable<CheckReceiptOptions['policy']>
  /** AMD's list, DER in hex. */
  revocations?: { list: string; at: string }
  chain?: {
    events: readonly (Omit<ChainLog, 'blockTime'> & { blockTime: string })[]
    transaction: 'mined' | 'pending' | 'unknown'
  }
  isEventDue?: boolean
  reevaluation?: { at: string; collateral: string }
}

export type Request = {
  id: number
  receipt?: string
  blocks?: Partial<Record<BlockRole, string>>
  /** Instead of `receipt` and `blocks`. */
  car?: string
  cid?: string
  opening?: string
  anchor?: Anchor
  reader: Reader
}

/** The checkpoint on the chain that published the receipt. Without `block`, its block is withheld. */
export type Anchor<Block = string> = {
  contract: string
  id: string
  size: number
  path: readonly string[]
  block?: Block
}

/** The same anchor with its block in another form. */
export function mapBlock<From, To>({ block, ...anchor }: Anchor<From>, convert: (block: From) => To): Anchor<To> {
  return { ...anchor, ...(block !== undefined && { block: convert(block) }) }
}

export type Outcome =
  | { error: string }
  | {
      verdict: string
      steps: Record<string, StepStatus | 'unchecked'>
      codes?: Record<string, string>
    }

export type Answer = { id: number } & Outcome
