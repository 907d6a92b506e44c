import { LogError, parseVkey } from '@countersign/log'
import { toHex } from '@countersign/protocol'
import { normaliseHex } from './measurementText.ts'

/** How people write the key of a witness, as an option or in a form. */
export const WITNESS_FORM = 'NAME+ID+KEY, as a witness states its Ed25519 key, or the 32 bytes of it in hex'

/** The key in hex; undefined where the text has another form, or is a key of another kind. */
export function parseWitnessText(text: string): string | undefined {
  if (!text.includes('+')) {
    const hex = normaliseHex(text)
    return hex?.length === 64 ? hex : undefined
  }
  try {
    const { type, publicKey } = parseVkey(text)
    return type === 'cosignature-ed25519' ? toHex(publicKey) : undefined
  } catch (error) {
    if (!(error instanceof LogError)) throw error
    return undefined
  }
}
