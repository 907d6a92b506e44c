import { isMainThread } from 'node:worker_threads'

// Loaded before a service (`--import`), whose input is a pipe from the process that started it. The pipe closes when that process
// ends, even if it was killed and could stop nothing; then the service ends too.
if (isMainThread) {
  process.stdin.on('end', () => process.kill(process.pid, 'SIGTERM')).resume()
  // Waiting for that must not keep the service alive.
  ;(process.stdin as unknown as { unref?: () => void }).unref?.()
}
