import type { Log } from '@countersign/service'
import type { WebhookEvents, WebhookWarning } from '../../store/webhooks.ts'
import type { Clock, Schedule } from '../../system.ts'
import { toReason } from '../../toReason.ts'
import { repeat } from '../repeat.ts'

/** Queues a warning as a webhook. Never throws, because the caller's work matters more. */
export type WarnOf = <Type extends keyof WebhookWarning>(type: Type, data: WebhookWarning[Type]) => Promise<void>

export function createWarner(deps: { events: Pick<WebhookEvents, 'write'>; clock: Clock; log: Log }): WarnOf {
  const { events, clock, log } = deps
  return async (type, data) => {
    try {
      await events.write(type, data, clock.now())
    } catch (error) {
      log.warn({ msg: 'Could not write a webhook', name: type, ...toReason(error) })
    }
  }
}

const EVERY_MS = 5_000

type KeyWatch = {
  /** The keys of the last read. Undefined before the first successful read. */
  current(): readonly Uint8Array[] | undefined
  stop(): void
}

/** Reads the keys that sign webhooks now and every few seconds. Keeps the last keys while the database is unavailable. */
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
      // The health check reports the database.
    }
  }

  const reading = repeat(read, { schedule, everyMs: EVERY_MS })
  await reading.first
  return { current: () => keys, stop: reading.stop }
}
