import { openInspector } from '../openInspector.ts'

/** What a process keeps, in MiB, once all its threads have collected their garbage: their JavaScript heaps, buffers included. */
export async function readHeapMib(inspectorUrl: string): Promise<number> {
  const { call, sessions, close } = await openInspector(inspectorUrl)
  try {
    await call(undefined, 'NodeWorker.enable', { waitForDebuggerOnStart: false })
    let bytes = 0
    for (const session of sessions()) {
      await call(session, 'HeapProfiler.collectGarbage')
      const usage = await call<Record<string, number>>(session, 'Runtime.getHeapUsage')
      const { usedSize = 0, embedderHeapUsedSize = 0, backingStorageSize = 0 } = usage
      bytes += usedSize + embedderHeapUsedSize + backingStorageSize
    }
    return bytes / 2 ** 20
  } finally {
    close()
  }
}
