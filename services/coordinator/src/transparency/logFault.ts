import { ServiceError } from '@countersign/protocol'

/** Why an enclave's log cannot be gone on with. `details` is for our own log. */
export class LogFault extends ServiceError<
  /** What the enclave says is no log: another signature, size or form. */
  | 'log_malformed'
  /** The database has another history than the enclave: leave the origin. */
  | 'log_conflict'
  /** Entries are neither in the database nor kept by the enclave: leave the origin. */
  | 'log_gap'
  /** Too many witnesses refuse the log, or the enclave does not go on from what is written: leave the origin. */
  | 'log_refused'
> {
  override name = 'LogFault'
}
