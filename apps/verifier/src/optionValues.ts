import {
  emptyManifest,
  findManifestFaults,
  type Manifest,
  normaliseHex,
  parseWitnessText,
  VerifierError,
  WITNESS_FORM,
} from '@countersign/verify'

export function toHexOption(flag: string, text: string, bytes: number): string {
  const hex = normaliseHex(text)
  if (hex === undefined) throw invalid(`${flag} is not hex`, text)
  if (hex.length !== 2 * bytes) throw invalid(`${flag} is not ${bytes} bytes of hex`, `${hex.length} digits`)
  return hex
}

export function toUrl(flag: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    throw invalid(`${flag} is not an http or https URL`, text)
  }
  if (url.username !== '' || url.password !== '') throw invalid(`${flag} has credentials in it`, url.host)
  return url
}

export function toBaseUrl(flag: string, text: string): string {
  const url = toUrl(flag, text)
  if (url.search !== '' || url.hash !== '') throw invalid(`${flag} has a query or fragment`, text)
  return url.href.replace(/\/+$/, '')
}

/** Both or neither: how many are enough is not for us to guess. */
export function toWitnesses({ witness, quorum }: { witness?: string[]; quorum?: string }): Pick<Manifest, 'log'> {
  if (witness === undefined && quorum === undefined) return {}
  if (witness === undefined || quorum === undefined) {
    throw invalid('--witness and --quorum belong together', 'whose cosignatures count, and how many are enough')
  }
  const log = { witnesses: witness.map(toWitnessKey), quorum: /^[1-9]\d?$/.test(quorum) ? Number(quorum) : 0 }
  const [fault] = findManifestFaults({ ...emptyManifest, log })
  if (fault !== undefined) throw invalid('--witness and --quorum are no policy', fault.fault)
  return { log }
}

function toWitnessKey(text: string): string {
  const key = parseWitnessText(text)
  if (key === undefined) throw invalid('--witness is no key of a witness', `${text} (${WITNESS_FORM})`)
  return key
}

export function invalid(message: string, details: string) {
  return new VerifierError('invalid_arguments', message, { details })
}
