import { setTimeout } from 'node:timers/promises'

/** Polls until the condition holds or the time is over. Returns whether it held. */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  limitMs: number,
  everyMs: number = 100,
): Promise<boolean> {
  const endsAt = performance.now() + limitMs
  for (;;) {
    if (await isSo()) return true
    if (performance.now() > endsAt) return false
    await setTimeout(everyMs)
  }
}
