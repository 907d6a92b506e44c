import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What is to be ended when a suite is over, however it ends. */
export type Scope = {
  /** For files; removed at the end. */
  folder: string
  /** Answers what it is given, and ends it in the end: the last first. */
  add<Thing>(thing: Thing, end: (thing: Thing) => Promise<unknown>): Thing
}

export async function withScope<Result>(run: (scope: Scope) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-bench-'))
  const ends: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })]
  try {
    return await run({
      folder,
      add(thing, end) {
        ends.push(() => end(thing))
        return thing
      },
    })
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}
