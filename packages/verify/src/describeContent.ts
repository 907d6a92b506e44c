import { fromHex, type OffChainContent, type TypedData } from '@countersign/protocol'
import type { ContentWords, Fact, Shown } from './contentWords.ts'
import { describeSignIn } from './describeSignIn.ts'
import { nameTokenGrant } from './nameTokenGrant.ts'
import { toPrintableLines } from './toPrintable.ts'
import { flattenTypedData } from './typedDataFacts.ts'

/** A message or typed data, as a person is shown it before signing, or as an opening shows it after. */
export type ShownContent = OffChainContent

const UNKNOWN_USE = 'What its contract or app lets somebody do with the signature is not known here.'

/**
 * What is signed off the chain, in words, field by field: with the name of what is known (EIP-4361, EIP-2612, Permit2, EIP-3009) and
 * a warning where the signature alone gives something away. Content that no enclave would sign is described too.
 *
 * @example
 * const { title, warnings, facts } = describeContent({ kind: 'typed-data', content: typedData }, { wallet })
 */
export function describeContent(shown: ShownContent, where: Shown): ContentWords {
  return shown.kind === 'message'
    ? describeMessage(shown.content.message, where)
    : describeTypedData(shown.content, where.wallet)
}

function describeMessage(message: string, where: Shown): ContentWords {
  const hex = message.slice(2).toLowerCase()
  const text = decode(hex)
  const bytes: Fact = { name: 'Bytes', value: `0x${hex}` }
  if (text === undefined) {
    return {
      title: 'A message that is no text',
      sentence: `${hex.length / 2} bytes, as a personal message (EIP-191).`,
      warnings: ['Nobody can tell from these bytes what they mean. They may be the hash of something else.'],
      facts: [bytes],
    }
  }
  const lines = toPrintableLines(text)
  const isAltered = lines !== text
  const facts = [{ name: 'Message', value: lines }, ...(isAltered ? [bytes] : [])]
  const hidden = isAltered
    ? [
        'The text has invisible, control or right-to-left characters. They are shown as \u{fffd}; the bytes are below it.',
      ]
    : []
  const signIn = describeSignIn(text, where)
  if (signIn !== undefined) {
    return { ...signIn, warnings: [...signIn.warnings, ...hidden], facts: [...signIn.facts, ...facts] }
  }
  return { title: 'A message', sentence: 'A personal message (EIP-191).', warnings: hidden, facts }
}

function describeTypedData(data: TypedData, wallet: string): ContentWords {
  const facts = flattenTypedData(data)
  const hidden = facts.some(({ value }) => value.includes('\u{fffd}'))
    ? ['A text in it has invisible, control or right-to-left characters. They are shown as \u{fffd}.']
    : []
  const grant = nameTokenGrant(data, wallet)
  if (grant !== undefined) return { ...grant, warnings: [...grant.warnings, ...hidden], facts }
  return {
    title: `Typed data: ${toPrintableLines(String(data.primaryType))}`,
    sentence: `Typed data (EIP-712). ${UNKNOWN_USE}`,
    warnings: hidden,
    facts,
  }
}

/** Undefined for what is no UTF-8. */
function decode(hex: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(fromHex(hex))
  } catch {
    return undefined
  }
}
