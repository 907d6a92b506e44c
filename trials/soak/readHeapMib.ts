import { openInspector } from '../openInspector.ts'

/** What a process keeps, in MiB, once it has collected all its garbage: the JavaScript heap of its main thread, buffers included. */
export async function readHeapMib(inspectorUrl: string): Promise<number> {
  const inspector = await openInspector(inspectorUrl)
  try {
    await inspector.call(undefined, 'HeapProfiler.collectGarbage')
    const {
      usedSize = 0,
      embedderHeapUsedSize = 0,
      backingStorageSize = 0,
    } = await inspector.call<Record<string, number>>(undefined, 'Runtime.getHeapUsage')
    return (usedSize + embedderHeapUsedSize + backingStorageSize) / 2 ** 20
  } finally {
    inspector.close()
  }
}
