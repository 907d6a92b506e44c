import { setTimeout } from 'node:timers/promises'

/** Waits on the system's clock. */
export async function wait(durationMs: number): Promise<void> {
  await setTimeout(durationMs)
}
