import { stat } from 'node:fs/promises'
import { createServer } from 'node:net'

/**
 * Locks a folder for this process, because a second witness on it could cosign what this one refuses. Uses a socket in Linux's abstract
 * namespace, named after the folder's inode: the kernel releases it when the process dies. The lock works within one host and network
 * namespace. Containers that share a volume need an orchestrator that starts only one of them.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const { dev, ino } = await stat(folder)
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', () => reject(new Error('another process uses this folder')))
    server.listen(`\0countersign-witness-${dev}-${ino}`, resolve)
  })
  return async () => void (await new Promise((resolve) => server.close(resolve)))
}
