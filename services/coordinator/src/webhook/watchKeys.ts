import type { Schedule, WebhookEvents } from '../ports.ts'

const EVERY_MS = 5_000

export type KeyWatch = {
  /** Those that were read last, without waiting for anything. Undefined while none were: that is not the same as none. */
  current(): readonly Uint8Array[] | undefined
  stop(): void
}

/** Reads the keys that sign webhooks, now and every few seconds; while the database does not answer, the last ones hold. */
export async function watchKeys(deps: {
  events: Pick<WebhookEvents, 'findKeys'>
  schedule: Schedule
}): Promise<KeyWatch> {
  const { events, schedule } = deps
  let keys: readonly Uint8Array[] | undefined
  let cancel = () => {}
  let isStopped = false

  async function read() {
    try {
      keys = await events.findKeys()
    } catch {
      // Health says so elsewhere.
    }
    if (!isStopped) cancel = schedule(() => void read(), EVERY_MS)
  }

  await read()
  return {
    current: () => keys,
    stop() {
      isStopped = true
      cancel()
    },
  }
}
