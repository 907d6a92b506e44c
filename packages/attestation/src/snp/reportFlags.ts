import type { ParsedReport } from './parseReport.ts'

/**
 * What a guest's policy allows (SNP ABI, "Guest Policy"), and what its platform says of itself (PLATFORM_INFO). None makes a report less
 * genuine; the reader's policy judges.
 */
export type ReportFlags = {
  debug: boolean
  migrationAgent: boolean
  smt: boolean
  singleSocket: boolean
  /** The firmware found no two addresses of one memory cell since the last reset. Never set in version 2, which has no bit for it. */
  aliasCheckComplete: boolean
  /** A policy bit that the specification does not define is set, or the one that must be set is not. */
  reservedBits: boolean
}

export function readReportFlags({ policy, platformInfo, version }: ParsedReport): ReportFlags {
  const has = (bit: bigint) => ((policy >> bit) & 1n) === 1n
  return {
    smt: has(16n),
    migrationAgent: has(18n),
    debug: has(19n),
    singleSocket: has(20n),
    aliasCheckComplete: version !== 2 && ((platformInfo >> 5n) & 1n) === 1n,
    // Bit 17 is reserved and one; bits 0–15 are ABI versions, 21–25 hardening options; above, nothing is defined.
    reservedBits: !has(17n) || policy >> 26n !== 0n,
  }
}
