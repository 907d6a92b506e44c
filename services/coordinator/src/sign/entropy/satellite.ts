import { parseTimestamp } from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
import { z } from 'zod'
import { type EntropySource, EntropySourceError } from './entropySource.ts'
import { type Fetch, fetchJson } from './fetchJson.ts'

export type CreateSatelliteSourceParameters = {
  /** Base URL; `/v1/samples` is added to it. */
  url: string
  fetch: Fetch
  /** For one answer. */
  timeoutMs?: number
}

const MAX_SAMPLES = 256

const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`))

const sample = z.object({
  // Not covered by the signature: a name to show, never one to trust.
  source: z.string().regex(/^[\x20-\x7e]{1,256}$/),
  value: hex(32),
  timestamp: z.string().refine((text) => parseTimestamp(text) !== undefined),
  sequence: z.int().min(0),
  publicKey: hex(32),
  signature: hex(64),
})

/**
 * The satellite protocol: `GET {url}/v1/samples?count=N` answers up to N signed samples. Witnesses carry the name that
 * the answer gives, because one address may stand for several satellites.
 */
export function createSatelliteSource(parameters: CreateSatelliteSourceParameters): EntropySource {
  const { url, fetch, timeoutMs = 1_500 } = parameters
  const base = `${url.replace(/\/+$/, '')}/v1/samples?count=`
  return {
    name: 'satellite',
    isSigned: true,
    async getSamples(count) {
      if (!Number.isInteger(count) || count < 1 || count > MAX_SAMPLES) throw new RangeError('count must be 1 to 256')
      return parseSamples(await fetchJson({ fetch }, { url: `${base}${count}`, timeoutMs }), count)
    },
  }
}

function parseSamples(answer: unknown, count: number): Witness[] {
  // Counted before anything is read: what was not asked for is not worth the work.
  const list = z.object({ samples: z.array(z.unknown()) }).safeParse(answer)
  if (!list.success) throw new EntropySourceError('malformed', { details: 'no samples' })
  if (list.data.samples.length > count) throw new EntropySourceError('too_many_samples')
  return list.data.samples.map((entry) => {
    const parsed = sample.safeParse(entry)
    if (!parsed.success) {
      throw new EntropySourceError('malformed', { details: parsed.error.issues[0]?.path.join('.') ?? '' })
    }
    const { source, value, timestamp, sequence, publicKey, signature } = parsed.data
    return { source, valueHex: value, signatureHex: signature, publicKey, timestamp, sequence }
  })
}
