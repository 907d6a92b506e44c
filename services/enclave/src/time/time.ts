import { MAX_SAMPLE_AGE_MS } from '@countersign/protocol/core'
import { EnclaveError } from '../errors.ts'
import type { Clock } from '../ports.ts'

/**
 * The enclave's time: the later of the clock and the floor. The host controls the clock, and may set it back or stop it. The floor
 * comes from signed and authenticated times of other parties, and advances with monotonic time.
 */
export type Time = Clock & {
  /** Clock or floor, whichever is later. Every expiry is judged by it, and signatures are dated by it. */
  now(): number
  /** What it certainly is later than. */
  floor(): number
  /** Whether issuers have told the time. */
  isKnown(): boolean
  /** Throws `time_unknown` until then. */
  assertKnown(): void
  /**
   * When this boot began, as a whole second: what was issued in that second or before, an earlier boot may have seen. Throws
   * `time_unknown` until then.
   */
  bootedAt(): number
  /** Takes the oldest time that the issuers answered. Answers how long it is until `bootedAt`. */
  learn(dateMs: number): number
  /**
   * Takes a verified time of issuers, ID tokens or witnesses. False where it lies so far ahead that it is to be refused: one party
   * alone cannot push the floor by more than that at a time.
   */
  raise(verifiedMs: number): boolean
  /** The latest time that a sample may have. Samples do not move it: a row of them, each ahead of the one before, would lead anywhere. */
  latestSample(): number
  /** Takes the time of a verified sample, which is no later than that. */
  raiseBySample(verifiedMs: number): void
}

export type TimeDeps = {
  clock: Clock
  /** Monotonic milliseconds since an arbitrary moment. The host cannot set them. */
  elapsedMs(): number
}

/**
 * Monotonic time counts a thousandth slow. Oscillators are off by less, so the floor never overtakes the true time by itself. If a
 * wrong clock pushed the floor ahead, the true time catches up.
 */
const MONOTONIC_RATE = 0.999

/** Made when the enclave starts: `bootedAt` counts from here. */
export function createTime({ clock, elapsedMs }: TimeDeps): Time {
  const startedAt = clock.now()
  const passedMs = () => Math.floor(MONOTONIC_RATE * elapsedMs())
  /** The floor from issuers, ID tokens and witnesses, minus the monotonic time at which it was learned. */
  let toldLessPassed = Number.NEGATIVE_INFINITY
  /** The floor from samples. It doesn't advance: one key signs all samples of a source, so its lead must end by itself. */
  let sampled = 0
  let bootedAt: number | undefined
  const told = () => toldLessPassed + passedMs()
  const takeTold = (timeMs: number) => {
    toldLessPassed = Math.max(toldLessPassed, timeMs - passedMs())
  }
  const floor = () => Math.max(told(), sampled)
  const now = () => Math.max(clock.now(), floor())
  return {
    now,
    floor,
    isKnown: () => bootedAt !== undefined,
    assertKnown() {
      if (bootedAt === undefined) throw timeUnknown()
    },
    bootedAt() {
      if (bootedAt === undefined) throw timeUnknown()
      // `iat` has whole seconds, so tokens of the second of the boot may be from before it. It is waited for, and they are refused.
      if (now() < bootedAt) throw timeUnknown('not yet past the start; if this persists, the clock was set back')
      return bootedAt
    },
    learn(dateMs) {
      takeTold(dateMs)
      bootedAt ??= Math.ceil(Math.max(startedAt, told()) / 1000) * 1000
      return Math.max(0, bootedAt - now())
    },
    raise(verifiedMs) {
      if (verifiedMs > now() + MAX_SAMPLE_AGE_MS) return false
      takeTold(verifiedMs)
      return true
    },
    latestSample: () => Math.max(clock.now(), told()) + MAX_SAMPLE_AGE_MS,
    raiseBySample(verifiedMs) {
      sampled = Math.max(sampled, verifiedMs)
    },
  }
}

function timeUnknown(details?: string) {
  return new EnclaveError('time_unknown', 'the enclave does not know the time yet', { details })
}
