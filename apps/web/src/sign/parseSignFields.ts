import {
  hashMessage,
  hashTypedData,
  isPlainObject,
  isPrefixedHex,
  parseStrictJson,
  ServiceError,
  type TypedData,
} from '@countersign/protocol'
import type { ShownContent } from '@countersign/verify'
import { bytesToHex, type Hex, stringToBytes } from 'viem'

export type SignKind = 'text' | 'hex' | 'typed-data'

export type SignFields = { kind: SignKind; text: string }

/** The kinds of content that the form supports. */
export type FormContent = Extract<ShownContent, { kind: 'message' | 'typed-data' }>

/** Pasted text may have any white space. `hashTypedData` limits the content without it. */
const JSON_LIMITS = { maxLength: 262_144, maxDepth: 24 }
const TOO_LONG = 'This is too long to sign.'
const MEMBERS = ['domain', 'types', 'primaryType', 'message'] as const

/** Parses the input by the enclave's rules, or returns an error. */
export function parseSignFields(
  { kind, text }: SignFields,
  { chainId }: { chainId: number },
): { shown: FormContent } | { error: string } {
  switch (kind) {
    case 'text':
      return parseText(text)
    case 'hex':
      return parseHex(text.trim())
    case 'typed-data':
      return parseTypedData(text, chainId)
  }
}

function parseText(text: string) {
  if (text === '') return { error: 'Enter a message.' }
  // Encoders replace it, so the signed text would differ from the input.
  if (/\p{Cs}/u.test(text)) return { error: 'The text contains an invalid character. Remove it and try again.' }
  return toMessage(bytesToHex(stringToBytes(text)))
}

function parseHex(text: string) {
  if (text === '') return { error: 'Enter 0x followed by hex digits.' }
  const lower = text.toLowerCase()
  if (!isPrefixedHex(lower)) return { error: 'Enter 0x followed by an even number of hex digits.' }
  return toMessage(lower)
}

function toMessage(message: Hex) {
  try {
    hashMessage(message)
  } catch {
    return { error: TOO_LONG }
  }
  return { shown: { kind: 'message', content: { message } } as const }
}

function parseTypedData(text: string, chainId: number): { shown: FormContent } | { error: string } {
  if (text.trim() === '') return { error: 'Paste the typed data.' }
  let value: unknown
  try {
    value = parseStrictJson(stringToBytes(text), JSON_LIMITS)
  } catch (error) {
    return { error: JSON_FAULTS[toCode(error)] ?? 'This isn’t valid JSON.' }
  }
  const content = value as TypedData
  try {
    hashTypedData(content)
  } catch (error) {
    if (toCode(error) === 'message_too_large') return { error: TOO_LONG }
    const details = error instanceof ServiceError && error.details ? error.details : 'it can’t be hashed'
    const names = isPlainObject(value) ? Object.keys(value) : []
    const isWhole = names.length === MEMBERS.length && MEMBERS.every((name) => names.includes(name))
    const needs = isWhole ? '' : ` Expected ${MEMBERS.join(', ')}.`
    return { error: `Invalid typed data: ${details}.${needs}` }
  }
  const asked = content.domain.chainId as string | number | undefined
  // EIP-712, "Definition of domainSeparator": a wallet rejects other chains than its own.
  if (asked !== undefined && BigInt(asked) !== BigInt(chainId)) {
    return { error: `This is for chain ${BigInt(asked)}. The wallet is on chain ${chainId}.` }
  }
  return { shown: { kind: 'typed-data', content } }
}

const JSON_FAULTS: Record<string, string> = {
  json_duplicate_member: 'A member appears twice, so the data is ambiguous.',
  json_too_large: TOO_LONG,
  json_too_deep: 'This is nested too deeply to sign.',
}

function toCode(error: unknown): string {
  return error instanceof ServiceError ? error.code : ''
}
