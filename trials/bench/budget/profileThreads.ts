import type { Inspector } from '../../openInspector.ts'
import type { Profile } from './toShares.ts'

export type ThreadProfile = { isMain: boolean; profile: Profile }

/** Enough to tell stages apart, for a few percent more work. */
const INTERVAL_US = 500

/** Profiles every thread of a process while this runs. */
export async function profileThreads(
  { call, sessions }: Inspector,
  run: () => Promise<unknown>,
): Promise<ThreadProfile[]> {
  await call(undefined, 'NodeWorker.enable', { waitForDebuggerOnStart: false })
  const profiled = sessions()
  for (const session of profiled) {
    await call(session, 'Profiler.enable')
    await call(session, 'Profiler.setSamplingInterval', { interval: INTERVAL_US })
  }
  await Promise.all(profiled.map((session) => call(session, 'Profiler.start')))
  await run()
  return Promise.all(
    profiled.map(async (session) => {
      const { profile } = await call<{ profile: Profile }>(session, 'Profiler.stop')
      await call(session, 'Profiler.disable')
      return { isMain: session === undefined, profile }
    }),
  )
}
