import type { Clock, WebhookEvents } from '../ports.ts'

/** Everybody may ask for them. */
const KEEP_MS = 5_000

/** The keys that sign webhooks, read anew every few seconds; while the database does not answer, those that were read last. */
export function createKeyReader(deps: {
  events: Pick<WebhookEvents, 'findKeys'>
  clock: Clock
}): () => Promise<readonly Uint8Array[]> {
  const { events, clock } = deps
  let keys: readonly Uint8Array[] = []
  let readAt = Number.NEGATIVE_INFINITY
  let underWay: Promise<void> | undefined

  async function read() {
    try {
      keys = await events.findKeys()
    } catch {
      // Health says so elsewhere.
    }
    readAt = clock.now()
  }

  return async () => {
    if (clock.now() >= readAt + KEEP_MS) {
      underWay ??= read().finally(() => {
        underWay = undefined
      })
      await underWay
    }
    return keys
  }
}
