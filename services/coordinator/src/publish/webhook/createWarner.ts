import type { Log } from '@countersign/service'
import type { WebhookEvents, WebhookWarning } from '../../store/webhooks.ts'
import type { Clock } from '../../system.ts'
import { toReason } from '../../toReason.ts'

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
