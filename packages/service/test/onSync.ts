import { type FileHandle, open, readlink } from 'node:fs/promises'
import { onTestFinished, vi } from 'vitest'

/**
 * Until the test ends, calls this before each sync, with the path of the file or folder. If it throws, that simulates a power failure:
 * nothing is synced.
 */
export async function onSync(call: (path: string) => void | Promise<void>): Promise<void> {
  const file = await open('/dev/null')
  const handles: Pick<FileHandle, 'sync'> = Object.getPrototypeOf(file)
  await file.close()
  const { sync } = handles
  const spy = vi.spyOn(handles, 'sync').mockImplementation(async function (this: FileHandle) {
    await call(await readlink(`/proc/self/fd/${this.fd}`))
    await sync.call(this)
  })
  onTestFinished(() => spy.mockRestore())
}
