import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol/core'

/** Why bytes of a log are not what they should be. What each asks of the reader stands beside it. */
export type LogErrorCode =
  /** Distrust the note: it is not a signed note in its one form. */
  | 'note_malformed'
  /** Fix the key: it is no verifier key, or of a kind that is not known here. */
  | 'note_key_malformed'
  /** Distrust the note: no key that is known signed it. */
  | 'note_unsigned'
  /** Distrust the note: it names a key that is known, and that key did not sign it. */
  | 'note_signature_invalid'
  /** Distrust the log: the text is not a checkpoint. */
  | 'checkpoint_malformed'
  /** Fix the call: the tree has no such leaf or size. */
  | 'tree_range_invalid'
  /** Distrust the state: a tree of this size has no such frontier. */
  | 'frontier_malformed'
  /** Distrust the log: this leaf is not where it should be in this tree. */
  | 'inclusion_invalid'
  /** Distrust the log: the newer tree does not continue the older. */
  | 'consistency_invalid'
  /** Distrust the log: a tile, a bundle of entries or the path of one is not in its form. */
  | 'tile_malformed'
  /** Distrust the log: the bytes are no entry of it. */
  | 'log_entry_malformed'
  /** Distrust the proof: the text is not a proof of a log in its one form. */
  | 'log_proof_malformed'
  /** Fix the policy: keys and quorum of the witnesses are not in their form. */
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
