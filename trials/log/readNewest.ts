import { hashOrigin } from '@countersign/log'
import type { RunningWitness } from '@countersign/testing/launcher'

/** The newest checkpoint of each witness that has one of this log, as it serves it. */
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
