import { setTimeout } from 'node:timers/promises'
import { runMonitor } from './runMonitor.ts'

// A reader such as `head` may close the pipe early.
process.stdout.on('error', () => {})

const ending = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => ending.abort())

process.exitCode = await runMonitor(
  {
    fetch: globalThis.fetch,
    timeoutMs: 10_000,
    now: () => new Date(),
    writeOut: (text) => void process.stdout.write(text),
    writeError: (text) => void process.stderr.write(text),
    wait: (ms) => setTimeout(ms, true, { signal: ending.signal }).catch(() => false),
  },
  process.argv.slice(2),
)
