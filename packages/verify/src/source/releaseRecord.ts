import { parseCanonicalJson, ServiceError, toCanonicalJson } from '@countersign/protocol'
import { z } from 'zod'
import { VerifierError } from '../errors.ts'

export const MAX_RECORD_BYTES = 65_536
const RECORD_VERSION = 'countersign-release-record/1'
const MAX_ITEMS = 32

const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`))
const name = z.string().regex(/^[a-z0-9][a-z0-9.-]{0,63}$/i)
/** Git names objects by SHA-1 or SHA-256. */
const objectId = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/)

const schema = z.strictObject({
  version: z.literal(RECORD_VERSION),
  release: z.string().regex(/^\d+\.\d+\.\d+(?:-[0-9a-z.-]{1,32})?$/),
  commit: objectId,
  tree: objectId,
  recordedAt: z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z$/),
  images: z
    .array(z.strictObject({ name, digest: z.string().regex(/^sha256:[0-9a-f]{64}$/), files: hex(32) }))
    .max(MAX_ITEMS),
  verifiers: z.array(z.strictObject({ name, bytes: z.int().min(0), sha256: hex(32) })).max(MAX_ITEMS),
  compose: hex(32),
})

/** What a release consists of. */
export type ReleaseRecord = {
  version: typeof RECORD_VERSION
  release: string
  commit: string
  /** Git's tree of the commit. */
  tree: string
  recordedAt: string
  /** `digest` of the OCI manifest, and `files`, the hash that `npm run measure` prints. */
  images: readonly { name: string; digest: string; files: string }[]
  verifiers: readonly { name: string; bytes: number; sha256: string }[]
  /** `template` of `readAppCompose`, for deploy/dstack/app-compose.json. */
  compose: string
}

export function formatReleaseRecord(record: Omit<ReleaseRecord, 'version'>): Uint8Array<ArrayBuffer> {
  const bytes = toCanonicalJson({ version: RECORD_VERSION, ...record })
  parseReleaseRecord(bytes)
  return bytes
}

/** Parses strictly: the log's leaf is the hash of these bytes. */
export function parseReleaseRecord(bytes: Uint8Array): ReleaseRecord {
  try {
    const result = schema.safeParse(parseCanonicalJson(bytes, { maxBytes: MAX_RECORD_BYTES }))
    if (result.success) return result.data
    throw invalid(`a release record has an invalid ${result.error.issues[0]?.path.join('.') || 'member'}`)
  } catch (error) {
    if (!(error instanceof ServiceError) || error instanceof VerifierError) throw error
    throw invalid(`a release record: ${error.details ?? error.message}`)
  }
}

function invalid(details: string) {
  return new VerifierError('release_log_invalid', 'invalid log of releases', { details })
}
