import { parseWitnessKey } from '@countersign/log'
import { normaliseHex } from './measurementText.ts'

/** How people write the key of a witness, as an option or in a form. */
export const WITNESS_FORM = 'NAME+ID+KEY, as a witness states its Ed25519 key, or the 32 bytes of it in hex'

/** The key in hex; undefined where the text has another form, or is a key of another kind. */
export function parseWitnessText(text: string): string | undefined {
  if (!text.includes('+')) {
    const hex = normaliseHex(text)
    return hex?.length === 64 ? hex : undefined
  }
  return parseWitnessKey(text)
}
