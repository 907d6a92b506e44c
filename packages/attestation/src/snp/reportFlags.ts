import type { ParsedReport } from './parseReport.ts'

/** What a guest's policy allows (SNP ABI, "Guest Policy"). None makes a report less genuine; the reader's policy judges. */
export type ReportFlags = {
  debug: boolean
  migrationAgent: boolean
  smt: boolean
  singleSocket: boolean
  /** A policy bit that the specification does not define is set, or the one that must be set is not. */
  reservedBits: boolean
}

export function readReportFlags({ policy }: ParsedReport): ReportFlags {
  const has = (bit: bigint) => ((policy >> bit) & 1n) === 1n
  return {
    smt: has(16n),
    migrationAgent: has(18n),
    debug: has(19n),
    singleSocket: has(20n),
    // Bit 17 is reserved and one; bits 0–15 are ABI versions, 21–25 hardening options; above, nothing is defined.
    reservedBits: !has(17n) || policy >> 26n !== 0n,
  }
}
