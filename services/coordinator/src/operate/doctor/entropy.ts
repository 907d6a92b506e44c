import type { Config } from '../../config.ts'
import {
  checkSample,
  checkTime,
  createEntropyKeys,
  isSampleSigned,
  type SampleFault,
} from '../../sign/entropy/checkSample.ts'
import { createEntropySource } from '../../sign/entropy/createEntropySource.ts'
import { createDrandSource } from '../../sign/entropy/drand.ts'
import { EntropySourceError } from '../../sign/entropy/entropySource.ts'
import { type Check, type Context, type Finding, fault, ok } from './check.ts'
import { explain, toShownUrl } from './reasons.ts'

/** Fetches one sample and verifies it like the coordinator does. The sample isn't used. */
export function createEntropyChecks(context: Context): Check[] {
  const { entropy } = context.subject.coordinator as Config
  return [{ name: 'entropy', settings: /^(ENTROPY_.*|RECEIPTS)$/, run: () => checkEntropy(context, entropy) }]
}

async function checkEntropy({ fetch, clock, timeoutMs }: Context, config: Config['entropy']): Promise<Finding> {
  const where = toShownUrl(config.url)
  try {
    const found = config.kind === 'drand' ? await getRound() : await getSample(config)
    if (found === undefined) return ok(`${config.kind} at ${where}: sample verified`)
    const [text, fix] = SAMPLE_FAULTS[found]
    return fault(`${where}: ${text}`, fix)
  } catch (error) {
    if (error instanceof RangeError)
      return fault('ENTROPY_PUBLIC_KEY is not a valid key', 'Use the key that the source publishes.')
    if (!(error instanceof EntropySourceError)) throw error
    return describeError(error, where)
  }

  async function getRound(): Promise<SampleFault | undefined> {
    if (config.kind !== 'drand') return undefined
    const { timestamp } = await createDrandSource({ ...config, fetch, timeoutMs }).getRound()
    return checkTime(Date.parse(timestamp), { now: clock.now(), maxAgeMs: config.maxAgeMs })
  }

  async function getSample(source: Exclude<Config['entropy'], { kind: 'drand' }>): Promise<SampleFault | undefined> {
    const { maxAgeMs, allowUnsigned } = source
    const { isSigned, getSamples } = createEntropySource({ fetch, clock, timeoutMs }, source)
    const publicKeys = createEntropyKeys(source.kind === 'satellite' ? source.publicKeys : [])
    const [sample] = await getSamples(1)
    if (sample === undefined) throw new EntropySourceError('malformed', { details: 'no sample' })
    const found = checkSample(sample, { publicKeys, now: clock.now(), maxAgeMs, isSigned, allowUnsigned })
    return found ?? (isSigned && !isSampleSigned(sample) ? 'wrong_signature' : undefined)
  }
}

const SAMPLE_FAULTS: Record<SampleFault, readonly [text: string, fix: string]> = {
  malformed: ['malformed sample', 'Check that ENTROPY_URL is a source of the kind in ENTROPY_SOURCE.'],
  unsigned: ['unsigned samples', 'Use a source that signs, or set ENTROPY_ALLOW_UNSIGNED where it is allowed.'],
  foreign_key: [
    'a sample signed by a key other than ENTROPY_PUBLIC_KEY',
    'Set the key that the source publishes, for coordinator and enclave.',
  ],
  wrong_signature: ['a sample with an invalid signature', 'Don’t trust the source, and ask its operator.'],
  stale: ['the sample is too old', 'Check the clock of this machine, then ask the source’s operator.'],
  future: ['the sample is from the future', 'Check the clock of this machine, then ask the source’s operator.'],
}

function describeError({ code, details = '' }: EntropySourceError, where: string): Finding {
  const url = 'in ENTROPY_URL'
  if (code === 'unauthorized') {
    return fault(
      `${where}: rejected credentials (401)`,
      'Correct ENTROPY_CLIENT_ID and ENTROPY_CLIENT_SECRET, or its file.',
    )
  }
  if (code === 'status') {
    const isQuota = details === '402' || details === '429'
    const fix = isQuota
      ? 'Ask the source’s operator for a higher quota, or wait for its renewal.'
      : details === '404'
        ? `Correct the path ${url}.`
        : 'Ask the source’s operator. For 403, check the credentials.'
    return fault(`${where}: ${isQuota ? 'quota exceeded' : 'request rejected'} (${details})`, fix)
  }
  if (code === 'unreachable' || code === 'timeout') {
    const known = explain(code === 'timeout' ? 'ETIMEDOUT' : details)
    return fault(
      `${where}: ${known?.text ?? `unreachable (${details})`}`,
      `${known?.fix ?? 'Check the network'}, ${url}.`,
    )
  }
  if (code === 'wrong_signature')
    return fault(`${where}: ${SAMPLE_FAULTS.wrong_signature[0]}`, SAMPLE_FAULTS.wrong_signature[1])
  return fault(`${where}: not an answer of an entropy source (${code})`, SAMPLE_FAULTS.malformed[1])
}
