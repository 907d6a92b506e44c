import { ServiceError } from '@countersign/protocol'
import { sha384 } from '@noble/hashes/sha2.js'

/** Checks the length that TDX and SEV-SNP share. */
export function toReportData(reportData: Uint8Array): Uint8Array {
  if (reportData instanceof Uint8Array && reportData.length === 64) return reportData
  throw new ServiceError('invalid_report_data', 'report data must have 64 bytes')
}

/** A settable field of fixed length; zero where nothing is set. */
export function sized(name: string, bytes: Uint8Array | undefined, length: number): Uint8Array {
  if (bytes === undefined) return new Uint8Array(length)
  if (bytes.length !== length) throw invalidOption(`${name} must have ${length} bytes`)
  return bytes
}

export function invalidOption(details: string) {
  return new ServiceError('simulator_option_invalid', 'the simulator cannot make this', { details })
}

/** A made-up measurement, the same for every seed. */
export function measure(name: string): Uint8Array {
  return sha384(new TextEncoder().encode(`countersign simulated ${name}`))
}
