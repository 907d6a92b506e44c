import { parentPort, type Worker } from 'node:worker_threads'

const READY = 'ready'
const END = 'end'

/** In a thread: says that it is ready, and takes messages until it is asked to end. */
export function serveThread<Message>(onMessage: (message: Message) => void): void {
  parentPort?.on('message', (message: Message | typeof END) => {
    if (message === END) parentPort?.close()
    else onMessage(message)
  })
  parentPort?.postMessage(READY)
}

/**
 * Asks a thread to end after the messages that it has, and resolves when it has ended. What it would answer later than at once is lost.
 * `terminate` would not wait, and within a call of libsecp256k1 it ends the whole process.
 */
export function endThread(worker: Worker): Promise<void> {
  return new Promise((resolve) => {
    worker.once('exit', () => resolve())
    worker.postMessage(END)
    if (worker.threadId === -1) resolve()
  })
}
