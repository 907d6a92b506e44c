import { findCosignatures, LogError, parseNote } from '@countersign/log/core'
import { isEd25519Signature } from '@countersign/service/ed25519'
import { EnclaveError } from '../errors.ts'

/** Finds which witnesses cosigned a text, and when by their clocks. Throws `log_refused` for an invalid cosignature. */
export type FindCosigners = (note: string) => {
  text: string
  cosignatures: readonly { witness: string; timestampS: number }[]
}

/** All calls that wait for one checkpoint bring the same note. */
const MAX_KNOWN = 64

export function createFindCosigners(witnesses: readonly string[]): FindCosigners {
  const known = new Map<string, ReturnType<FindCosigners>>()

  return (note) => {
    const found = known.get(note) ?? findAll(note)
    if (known.size >= MAX_KNOWN) known.clear()
    known.set(note, found)
    return found
  }

  function findAll(note: string) {
    try {
      const parsed = parseNote(note)
      return { text: parsed.text, cosignatures: findCosignatures(parsed, witnesses, isEd25519Signature) }
    } catch (error) {
      if (!(error instanceof LogError)) throw error
      throw new EnclaveError('log_refused', 'the checkpoint is not accepted', { details: error.code, cause: error })
    }
  }
}
