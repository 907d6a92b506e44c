import { stat } from 'node:fs/promises'
import { createServer } from 'node:net'

/**
 * Keeps a folder for this process: a second witness on it could cosign what this one refuses. By a socket in Linux's abstract namespace with
 * the folder's number in its name, since the kernel lets go of it when the process dies, however it dies. It holds within one
 * host and network namespace; containers that share a volume need an orchestrator that starts one of them.
 */
export async function holdFolder(folder: string): Promise<() => Promise<void>> {
  const { dev, ino } = await stat(folder)
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', () => reject(new Error('another process has this folder')))
    server.listen(`\0countersign-witness-${dev}-${ino}`, resolve)
  })
  return async () => void (await new Promise((resolve) => server.close(resolve)))
}
