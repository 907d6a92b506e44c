/** Code of an SEV-SNP guest, lower-case hex: what was launched (48 bytes) and, where it is named, what its host added (32 bytes). */
export type SnpMeasurement = { measurement: string; hostData: string | undefined }

/**
 * Reads how people and policies write it, `MEASUREMENT:HOST_DATA`; undefined for anything else. A host sets HOST_DATA at launch, and
 * guests take the hash of more code or settings from it, so that a measurement alone does not say which code ran.
 */
export function readSnpMeasurement(value: unknown): SnpMeasurement | undefined {
  const match = typeof value === 'string' ? /^([0-9a-f]{96})(?::([0-9a-f]{64}))?$/.exec(value) : null
  return match === null ? undefined : { measurement: match[1] ?? '', hostData: match[2] }
}
