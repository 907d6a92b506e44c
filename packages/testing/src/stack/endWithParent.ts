import { isMainThread } from 'node:worker_threads'

// Loaded before a service (`--import`). The service's stdin is a pipe from its parent process. When the parent dies, even if killed, the pipe
// closes and this ends the service.
if (isMainThread) {
  process.stdin.on('end', () => process.kill(process.pid, 'SIGTERM')).resume()
  // The open stdin must not keep the service alive.
  ;(process.stdin as unknown as { unref?: () => void }).unref?.()
}
