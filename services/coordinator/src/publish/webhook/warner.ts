import type { Log } from '@countersign/service'
import type { WebhookEvents, WebhookWarning } from '../../store/webhooks.ts'
import type { Clock, Schedule } from '../../system.ts'
import { toReason } from '../../toReason.ts'
import { repeat } from '../repeat.ts'

/** Has a warning told. It never throws: what the warning is of matters more. */
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
