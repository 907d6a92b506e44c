import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol/core'

/** Errors about a log's bytes, each with advice for the reader. */
export type LogErrorCode =
  /** Distrust the note: it is not a signed note in canonical form. */
  | 'note_malformed'
  /** Fix the key: it is not a verifier key, or has an unknown type. */
  | 'note_key_malformed'
  /** Distrust the note: no known key signed it. */
  | 'note_unsigned'
  /** Distrust the note: it names a known key that did not sign it. */
  | 'note_signature_invalid'
  /** Distrust the log: the text is not a checkpoint. */
  | 'checkpoint_malformed'
  /** Fix the call: the tree has no such leaf or size. */
  | 'tree_range_invalid'
  /** Distrust the state: a tree of this size has no such frontier. */
  | 'frontier_malformed'
  /** Distrust the log: this leaf is not at its stated position in this tree. */
  | 'inclusion_invalid'
  /** Distrust the log: the newer tree does not continue the older. */
  | 'consistency_invalid'
  /** Distrust the log: a tile, a bundle of entries or its path is malformed. */
  | 'tile_malformed'
  /** Distrust the log: the bytes are not an entry. */
  | 'log_entry_malformed'
  /** Distrust the proof: the text is not a log proof in canonical form. */
  | 'log_proof_malformed'
  /** Fix the policy: its keys or quorum are malformed. */
  | 'witness_policy_malformed'
  /** Ask more witnesses, or distrust the log: too few of them cosigned. */
  | 'quorum_missing'
  /** Fix the call: the text is not a request to add a checkpoint. */
  | 'add_checkpoint_malformed'
  /** Distrust the answer: it is not a witness statement in canonical form. */
  | 'witness_statement_malformed'
  /** Ask again, or distrust the answer: none of the witnesses signed it for this request and this time. */
  | 'witness_statement_invalid'

export class LogError extends ServiceError<LogErrorCode> {
  override name = 'LogError'
  constructor(code: LogErrorCode, message: string, options?: ServiceErrorOptions) {
    super(code, message, options)
  }
}
