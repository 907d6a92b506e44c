import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Parts that must be ended: in reverse order, and each even if another fails. */
export type Scope = {
  /** Adds a part to the scope and returns it. */
  add<Thing>(thing: Thing, end: (thing: Thing) => Promise<unknown>): Thing
  /** Creates a folder that is removed with the scope. */
  createFolder(): Promise<string>
}

/** Runs a task, then ends the parts that it added, even if it failed. */
export async function withScope<Result>(run: (scope: Scope) => Promise<Result>): Promise<Result> {
  const { scope, end } = createScope()
  try {
    return await run(scope)
  } finally {
    await end()
  }
}

/** Starts something with parts. If a part fails to start, the earlier ones are ended; otherwise `stop` ends them all. */
export async function startInScope<Parts extends object>(
  start: (scope: Scope) => Promise<Parts>,
): Promise<Parts & { stop(): Promise<void> }> {
  const { scope, end } = createScope()
  try {
    return { ...(await start(scope)), stop: end }
  } catch (error) {
    await end()
    throw error
  }
}

/** Waits for parts that start concurrently. Waits for all even if one fails, so that the scope can end those that started. */
export async function allStarted<const Starts extends readonly unknown[]>(
  starts: Starts,
): Promise<{ -readonly [Index in keyof Starts]: Awaited<Starts[Index]> }> {
  await Promise.allSettled(starts)
  return Promise.all(starts)
}

export function createScope(): { scope: Scope; end(): Promise<void> } {
  const things = new AsyncDisposableStack()
  let ending: Promise<void> | undefined
  return {
    scope: {
      add: (thing, end) => things.adopt(thing, async (each) => void (await end(each))),
      async createFolder() {
        const folder = await mkdtemp(join(tmpdir(), 'countersign-'))
        things.defer(() => rm(folder, { recursive: true, force: true }))
        return folder
      },
    },
    end() {
      ending ??= things.disposeAsync()
      return ending
    },
  }
}
