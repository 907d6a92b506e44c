import type { WebhookEvents } from '../../store/webhooks.ts'
import type { Schedule } from '../../system.ts'
import { repeat } from '../repeat.ts'

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

  async function read() {
    try {
      keys = await events.findKeys()
    } catch {
      // Health says so elsewhere.
    }
  }

  const reading = repeat(read, { schedule, everyMs: EVERY_MS })
  await reading.first
  return { current: () => keys, stop: reading.stop }
}
