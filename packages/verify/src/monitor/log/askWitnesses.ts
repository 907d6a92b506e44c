import { findCosignatures, LogError, MAX_NOTE_BYTES, parseCheckpoint, parseNote } from '@countersign/log'
import { VerifierError } from '../../errors.ts'
import type { FetchBytes } from '../../fetchBytes.ts'
import { mapSome } from '../mapSome.ts'
import { hashOrigin } from './createLogSource.ts'

/** The newest that a witness has cosigned of a log, in its own words. */
export type WitnessWord =
  | { host: string; witness: string; size: number; root: Uint8Array }
  /** It knows of no checkpoint. */
  | { host: string; size: 0 }
  | { host: string; fault: string }

/** Asks witnesses themselves, past the service, for the newest that they cosigned (`GET /<SHA-256 of the origin>/checkpoint`). Each address is asked once. */
export async function askWitnesses(
  { fetchBytes }: { fetchBytes: FetchBytes },
  { urls, origin, witnesses }: { urls: readonly string[]; origin: string; witnesses: readonly string[] },
): Promise<WitnessWord[]> {
  return mapSome([...new Set(urls)], async (base): Promise<WitnessWord> => {
    const { host } = new URL(base)
    try {
      const url = `${base}/${hashOrigin(origin)}/checkpoint`
      const note = parseNote(
        new TextDecoder().decode(await fetchBytes({ url, maxBytes: MAX_NOTE_BYTES, accept: 'text/plain' })),
      )
      const { origin: named, size, root } = parseCheckpoint(note.text)
      const [own] = findCosignatures(note, witnesses)
      if (named !== origin || own === undefined) {
        return { host, fault: 'answers with what none of the witnesses cosigned of this log' }
      }
      return { host, witness: own.witness, size, root }
    } catch (error) {
      if (error instanceof VerifierError && error.status === 404) return { host, size: 0 }
      if (error instanceof VerifierError) return { host, fault: error.details ?? error.message }
      if (error instanceof LogError) return { host, fault: `answers with no checkpoint: ${error.message}` }
      throw error
    }
  })
}
