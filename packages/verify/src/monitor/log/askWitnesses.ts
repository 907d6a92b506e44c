import {
  findCosignatures,
  LogError,
  MAX_NOTE_BYTES,
  type Note,
  openNote,
  parseCheckpoint,
  parseNote,
  parseVkey,
} from '@countersign/log'
import { VerifierError } from '../../errors.ts'
import type { FetchBytes } from '../../fetchBytes.ts'
import { mapSome } from '../mapSome.ts'
import { hashOrigin } from './createLogSource.ts'

/** The newest that a witness has cosigned of a log, in its own words. */
export type WitnessWord =
  | { host: string; witness: string; size: number; root: Uint8Array }
  /** It knows of no checkpoint. */
  | { host: string; size: 0 }
  | { host: string; kind: 'witness-unavailable' | 'witness-contradicts'; fault: string }

export type AskWitnessesParameters = {
  urls: readonly string[]
  origin: string
  /** Verifier key of the log, as far as it is known. */
  key: string | undefined
  witnesses: readonly string[]
}

/** Asks witnesses themselves, past the service, for the newest that they cosigned (`GET /<SHA-256 of the origin>/checkpoint`). Each address is asked once. */
export async function askWitnesses(
  { fetchBytes }: { fetchBytes: FetchBytes },
  { urls, origin, key, witnesses }: AskWitnessesParameters,
): Promise<WitnessWord[]> {
  return mapSome([...new Set(urls)], async (base): Promise<WitnessWord> => {
    const { host } = new URL(base)
    const unavailable = (fault: string) => ({ host, kind: 'witness-unavailable', fault }) as const
    try {
      const url = `${base}/${hashOrigin(origin)}/checkpoint`
      const note = parseNote(
        new TextDecoder().decode(await fetchBytes({ url, maxBytes: MAX_NOTE_BYTES, accept: 'text/plain' })),
      )
      const { origin: named, size, root } = parseCheckpoint(note.text)
      const [own] = findCosignatures(note, witnesses)
      if (named !== origin || own === undefined) {
        return unavailable('answers with what none of the witnesses cosigned of this log')
      }
      if (key !== undefined && !isSigned(note, key)) {
        return {
          host,
          kind: 'witness-contradicts',
          fault: `cosigned ${size} entries that the key of the log did not sign`,
        }
      }
      return { host, witness: own.witness, size, root }
    } catch (error) {
      if (error instanceof VerifierError && error.status === 404) return { host, size: 0 }
      if (error instanceof VerifierError) return unavailable(error.details ?? error.message)
      if (error instanceof LogError) return unavailable(`answers with no checkpoint: ${error.message}`)
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
