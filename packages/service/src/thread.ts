import { parentPort, type Worker } from 'node:worker_threads'

const READY = 'ready'
const END = 'end'

/** Runs in a thread: reports that it is ready, and receives messages until it is asked to end. */
export function serveThread<Message>(onMessage: (message: Message) => void): void {
  parentPort?.on('message', (message: Message | typeof END) => {
    if (message === END) parentPort?.close()
    else onMessage(message)
  })
  parentPort?.postMessage(READY)
}

/**
 * Asks a thread to end after its queued messages, and resolves when it has ended. Drops asynchronous results. `terminate` would not wait, and
 * during a call of libsecp256k1 it ends the whole process.
 */
export function endThread(worker: Worker): Promise<void> {
  return new Promise((resolve) => {
    worker.once('exit', () => resolve())
    worker.postMessage(END)
    if (worker.threadId === -1) resolve()
  })
}
