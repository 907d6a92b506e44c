import { hashOrigin } from '@countersign/log'
import type { RunningWitness } from '@countersign/testing/launcher'
import type { Query } from '../openQuery.ts'

/** The database's rows of one log. */
export type LogRows = {
  origin: string
  /** Verifier key. */
  key: string
  /** In order, from index 0. */
  entries: readonly Uint8Array[]
  checkpoints: readonly { size: number; root: string }[]
  notes: readonly { size: number; note: string }[]
  /** Stored signatures, with the index of the entry and the note that released it. */
  signings: readonly { slug: string; index: number; note: string }[]
}

/** Reads all logs in the order of their creation. Bypasses the store, so that its code is tested too. */
export async function readLogs(query: Query): Promise<LogRows[]> {
  const logs = await query<{ id: number; origin: string; key: string }>('select id, origin, key from logs order by id')
  return Promise.all(
    logs.map(async ({ id, origin, key }) => {
      const entries = await query<{ index: string; entry: Uint8Array }>(
        `select size - length(entries) / 57 + place as index, substr(entries, 57 * place + 1, 57) as entry from log_appends
          cross join generate_series(0, length(entries) / 57 - 1) as place where log_id = $1 order by index`,
        [id],
      )
      for (const [place, { index }] of entries.entries()) {
        if (Number(index) !== place) throw new Error(`${origin}: entry ${place} is missing`)
      }
      const checkpoints = await query<{ size: string; root: string }>(
        `select size, encode(root, 'hex') as root from log_appends where log_id = $1 and note is not null order by size`,
        [id],
      )
      const notes = await query<{ size: string; note: string }>(
        'select size, note from log_notes where log_id = $1 order by size',
        [id],
      )
      const signings = await query<{ slug: string; index: string; note: string }>(
        `select a.slug, s.log_index as index, n.note from signings s join proofs a on a.signing_id = s.id
          join verifications v on v.id = s.verification_id join log_notes n on n.hash = v.log_note
          where n.log_id = $1`,
        [id],
      )
      return {
        origin,
        key,
        entries: entries.map(({ entry }) => entry),
        checkpoints: checkpoints.map(({ size, root }) => ({ size: Number(size), root })),
        notes: notes.map(({ size, note }) => ({ size: Number(size), note })),
        signings: signings.map(({ slug, index, note }) => ({ slug, index: Number(index), note })),
      }
    }),
  )
}

/** The newest checkpoint that each witness serves for this log. */
export async function readNewest(
  witnesses: readonly RunningWitness[],
  origin: string,
): Promise<{ name: string; vkey: string; note: string }[]> {
  const read = await Promise.all(
    witnesses.map(async ({ name, vkey, url }) => {
      const response = await fetch(`${url}/${hashOrigin(origin)}/checkpoint`)
      const note = await response.text()
      return response.status === 404 ? [] : [{ name, vkey, note }]
    }),
  )
  return read.flat()
}
