import { parseTimestamp } from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
import { z } from 'zod'
import { type EntropySource, EntropySourceError } from './entropySource.ts'
import { type Fetch, fetchJson } from './fetchJson.ts'

export type CreateSatelliteSourceParameters = {
  /** The base URL, without `/v1/samples`. */
  url: string
  fetch: Fetch
  /** The limit for one answer. */
  timeoutMs?: number
}

const MAX_SAMPLES = 256

const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`))

const sample = z.object({
  // The signature doesn't cover this. It is a name to display, never to trust.
  source: z.string().regex(/^[\x20-\x7e]{1,256}$/),
  value: hex(32),
  timestamp: z.string().refine((text) => parseTimestamp(text) !== undefined),
  sequence: z.int().min(0),
  publicKey: hex(32),
  signature: hex(64),
})

/**
 * The satellite protocol: `GET {url}/v1/samples?count=N` returns up to N signed samples. Samples carry the name from the answer, because one
 * address may serve several satellites.
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
  // Check the count first, to avoid work on samples that were not requested.
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
