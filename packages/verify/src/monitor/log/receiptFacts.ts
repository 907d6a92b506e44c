import { parseCheckpoint, parseNote, parseTlogProof } from '@countersign/log'
import { hashLeaf, type LogSetting, ServiceError, toHex } from '@countersign/protocol'
import { parseBlock } from '@countersign/receipt'
import type { Outcome } from '../../verify.ts'

/** What a receipt has to do with a log. */
export type ReceiptFacts = {
  /** By which its event names it. */
  txHash: string
  keyId: string
  /** 32 bytes of hex: that of its statement. */
  leaf: string
  signedAtMs: number
  /** Where its settings have a log. */
  log: LoggedFacts | undefined
}

type LoggedFacts = {
  setting: LogSetting
  /** Verifier key of the log that has it. */
  key: string
  origin: string
  /** The enclave start that signed it, from the batch that the quote covers. */
  bootId: string
  /** Where its proof says that it is, and in which tree. */
  index: number
  size: number
  root: Uint8Array
}

/** Undefined where there is no receipt, or no statement, to read. What it says of a log is as good as the verdict on it. */
export function readFacts(
  txHash: string,
  { receipt, blocks }: Pick<Outcome, 'receipt' | 'blocks'>,
): ReceiptFacts | undefined {
  if (receipt === undefined) return undefined
  const { statement } = receipt.signer
  const leaf = readOrRefuse(() => toHex(hashLeaf(statement)))
  if (leaf === undefined) return undefined
  const signedAtMs = new Date(statement.signedAt).getTime()
  const proof = 'log' in receipt ? receipt.log : undefined
  const { batch } = blocks
  const log = proof === undefined || batch === undefined ? undefined : readOrRefuse(() => readLogged(proof, batch))
  return { txHash, keyId: statement.keyId, leaf, signedAtMs, log }
}

function readLogged(proof: string, batch: Uint8Array): LoggedFacts | undefined {
  const { settings, logKey, bootId } = parseBlock('batch', batch)
  if (settings.log === null || logKey === undefined) return undefined
  const { index, checkpoint } = parseTlogProof(proof)
  const { origin, size, root } = parseCheckpoint(parseNote(checkpoint).text)
  return { setting: settings.log, key: logKey, origin, bootId, index, size, root }
}

/** A receipt is whatever a publisher pinned: what cannot be read of it is undefined, and the step that judges it says why. */
function readOrRefuse<Value>(read: () => Value): Value | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}
