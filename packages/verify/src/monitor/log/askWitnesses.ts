import {
  hashOrigin,
  LogError,
  MAX_WITNESS_STATEMENT_BYTES,
  type Note,
  openNote,
  openWitnessStatement,
  parseVkey,
  toStatementPath,
} from '@countersign/log'
import { toHex } from '@countersign/protocol'
import { VerifierError } from '../../errors.ts'
import type { FetchBytes } from '../../fetchBytes.ts'
import { mapSome } from '../mapSome.ts'

/** A witness's signed statement about a log, for this request. */
export type WitnessWord =
  | { host: string; witness: string; size: number; root: Uint8Array }
  /** It has cosigned no checkpoint. */
  | { host: string; witness: string; size: 0 }
  | { host: string; kind: 'witness-unavailable' | 'witness-contradicts'; fault: string }

export type AskWitnessesParameters = {
  urls: readonly string[]
  origin: string
  /** Verifier key of the log, as far as it is known. */
  key: string | undefined
  witnesses: readonly string[]
}

/** Asks witnesses directly, not through the service, for the newest checkpoint that they cosigned (`log-v1.md` §4). Asks each address once. */
export async function askWitnesses(
  { fetchBytes, now }: { fetchBytes: FetchBytes; now: () => Date },
  { urls, origin, key, witnesses }: AskWitnessesParameters,
): Promise<WitnessWord[]> {
  return mapSome(urls, async (base): Promise<WitnessWord> => {
    const { host } = new URL(base)
    const unavailable = (fault: string) => ({ host, kind: 'witness-unavailable', fault }) as const
    const nonce = toHex(crypto.getRandomValues(new Uint8Array(32)))
    const url = `${base}${toStatementPath({ originHash: hashOrigin(origin), nonce })}`
    try {
      const bytes = await fetchBytes({ url, maxBytes: MAX_WITNESS_STATEMENT_BYTES, accept: 'application/json' })
      const { witness, known } = openWitnessStatement(bytes, { origin, nonce, witnesses, now: now() })
      if (known === undefined) return { host, witness, size: 0 }
      const { size, root, note } = known
      if (key !== undefined && !isSigned(note, key)) {
        const fault = `cosigned ${size} entries that the key of the log did not sign`
        return { host, kind: 'witness-contradicts', fault }
      }
      return { host, witness, size, root }
    } catch (error) {
      if (error instanceof VerifierError) return unavailable(error.details ?? error.message)
      if (error instanceof LogError) return unavailable(`${error.message}: ${error.details}`)
      throw error
    }
  })
}

/**
 * One witness could make up a history, and have an honest log called a liar. But the key is the service's word, and it could name a false
 * one to have honest witnesses passed over: so what the key did not sign is evidence against neither of them alone.
 */
function isSigned(note: Note, key: string): boolean {
  try {
    return openNote(note, [parseVkey(key)]).verified.length > 0
  } catch (error) {
    if (error instanceof LogError) return false
    throw error
  }
}
