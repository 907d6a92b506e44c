import { isMainThread } from 'node:worker_threads'

// Loaded before a service (`--import`), whose input is a pipe from the supervisor: it ends when the supervisor does, even when
// that was killed and could stop nobody.
if (isMainThread) {
  process.stdin.on('end', () => process.kill(process.pid, 'SIGTERM')).resume()
  // Waiting for that must not itself keep the service alive.
  ;(process.stdin as unknown as { unref?: () => void }).unref?.()
}
