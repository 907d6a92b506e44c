import { normaliseHex, VerifierError } from '@countersign/verify'

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

export function invalid(message: string, details: string) {
  return new VerifierError('invalid_arguments', message, { details })
}
