import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { LogError, parseVkey } from '@countersign/log'
import { isAddress } from '@countersign/protocol'
import {
  emptyManifest,
  findManifestFaults,
  type Manifest,
  normaliseHex,
  parseWitnessText,
  VerifierError,
  WITNESS_FORM,
} from '@countersign/verify'

/** Parses options and words. Rejects unknown options, missing values, and repeated options that allow one value. */
export function parseFlags<const Flags extends ParseArgsOptionsConfig>(flags: Flags, args: readonly string[]) {
  const { tokens, ...parsed } = parseStrictly(flags, args)
  const seen = new Set<string>()
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    if (seen.has(token.name) && flags[token.name]?.multiple !== true) throw invalid('option given twice', token.rawName)
    seen.add(token.name)
  }
  return parsed
}

function parseStrictly<const Flags extends ParseArgsOptionsConfig>(options: Flags, args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true, tokens: true })
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause
    // After the first sentence, Node adds hints for programmers.
    const [message = cause.message] = cause.message.split(/\. |\n/)
    throw new VerifierError('invalid_arguments', message, { details: 'see --help', cause })
  }
}

export function toNumber(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^(0|[1-9]\d{0,14})$/.test(text)) throw invalid(`${flag} expects a whole number`, text)
  return Number(text)
}

export function toHexOption(flag: string, text: string, bytes: number): string {
  const hex = normaliseHex(text)
  if (hex === undefined) throw invalid(`${flag} expects hex`, text)
  if (hex.length !== 2 * bytes) throw invalid(`${flag} expects ${bytes} bytes of hex`, `got ${hex.length} digits`)
  return hex
}

/** Rejects a mistyped address. Checking it would find nothing, which would look like a clean result. */
export function toAddressOption(flag: string, text: string): string {
  const address = `0x${toHexOption(flag, text, 20)}`
  if (isAddress(`0x${text.replace(/^0x/, '')}`)) return address
  throw invalid(`invalid ${flag}`, `wrong checksum (EIP-55): ${text}`)
}

export function toUrl(flag: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    throw invalid(`${flag} expects an http or https URL`, text)
  }
  if (url.username !== '' || url.password !== '') throw invalid(`${flag} must not contain credentials`, url.host)
  return url
}

export function toBaseUrl(flag: string, text: string): string {
  const url = toUrl(flag, text)
  if (url.search !== '' || url.hash !== '') throw invalid(`${flag} must not have a query or fragment`, text)
  return url.href.replace(/\/+$/, '')
}

/** Requires both options or neither, because there is no safe default quorum. */
export function toWitnesses({ witness, quorum }: { witness?: string[]; quorum?: string }): Pick<Manifest, 'log'> {
  if (witness === undefined && quorum === undefined) return {}
  if (witness === undefined || quorum === undefined) {
    throw invalid('--witness and --quorum require each other', 'name the witnesses and how many must cosign')
  }
  const log = {
    witnesses: witness.map((text) => toWitnessKey(text)),
    quorum: /^[1-9]\d?$/.test(quorum) ? Number(quorum) : 0,
  }
  const [fault] = findManifestFaults({ ...emptyManifest, log })
  if (fault !== undefined) throw invalid('invalid --witness or --quorum', fault.fault)
  return { log }
}

/** A log's verifier key. */
export function toLogKey(text: string): string {
  try {
    if (parseVkey(text).type === 'ed25519') return text
  } catch (error) {
    if (!(error instanceof LogError)) throw error
  }
  throw invalid('invalid --release-key', `${text}, expected NAME+ID+KEY of a log`)
}

export function toWitnessKey(text: string, option = '--witness'): string {
  const key = parseWitnessText(text)
  if (key === undefined) throw invalid(`invalid ${option}`, `${text} (${WITNESS_FORM})`)
  return key
}

export function invalid(message: string, details: string) {
  return new VerifierError('invalid_arguments', message, { details })
}
