import { MAX_SAMPLE_AGE_MS } from '@countersign/protocol/core'
import { EnclaveError } from '../errors.ts'
import type { Clock } from '../ports.ts'

/**
 * The enclave's time: the later of the clock and the floor. The host controls the clock and may set it back or stop it. The floor comes from
 * signed and authenticated times of other parties, and advances with monotonic time.
 */
export type Time = Clock & {
  /** The later of clock and floor. It decides every expiry and dates signatures. */
  now(): number
  /** The actual time is certainly later than this. */
  floor(): number
  /** Whether issuers have provided the time. */
  isKnown(): boolean
  /** Throws `time_unknown` until then. */
  assertKnown(): void
  /**
   * When this boot began, in whole seconds. An earlier boot may have seen tokens issued in that second or before. Throws `time_unknown` until
   * the time is known.
   */
  bootedAt(): number
  /** Takes the oldest time that the issuers returned. Returns the milliseconds until `bootedAt`. */
  learn(dateMs: number): number
  /**
   * Takes a verified time from issuers, ID tokens or witnesses. Returns false if it is too far ahead: a single party can't push the floor
   * further at a time.
   */
  raise(verifiedMs: number): boolean
  /**
   * The latest time that a sample may have. Samples don't move it; otherwise a series of them, each ahead of the last, could lead anywhere.
   */
  latestSample(): number
  /** Takes the time of a verified sample, at most `latestSample()`. */
  raiseBySample(verifiedMs: number): void
}

export type TimeDeps = {
  clock: Clock
  /** Monotonic milliseconds since an arbitrary moment. The host cannot set them. */
  elapsedMs(): number
}

/**
 * Monotonic time counts 0.1 % slow. Oscillators are more accurate, so the floor never overtakes the true time by itself. If a wrong clock
 * pushed the floor ahead, the true time catches up.
 */
const MONOTONIC_RATE = 0.999

/** Create it when the enclave starts: `bootedAt` counts from here. */
export function createTime({ clock, elapsedMs }: TimeDeps): Time {
  const startedAt = clock.now()
  const passedMs = () => Math.floor(MONOTONIC_RATE * elapsedMs())
  /** The floor from issuers, ID tokens and witnesses, minus the monotonic time at which it was learned. */
  let verifiedOffsetMs = Number.NEGATIVE_INFINITY
  /** The floor from samples. It doesn't advance: one key signs all samples of a source, so its lead must end by itself. */
  let sampled = 0
  let bootedAt: number | undefined
  const verifiedFloor = () => verifiedOffsetMs + passedMs()
  const raiseFloor = (timeMs: number) => {
    verifiedOffsetMs = Math.max(verifiedOffsetMs, timeMs - passedMs())
  }
  const floor = () => Math.max(verifiedFloor(), sampled)
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
      // `iat` has whole seconds, so tokens from the second of the boot may be older than it. Wait for that second to end, and reject them.
      if (now() < bootedAt) throw timeUnknown('not yet past the start; if this persists, the clock was set back')
      return bootedAt
    },
    learn(dateMs) {
      raiseFloor(dateMs)
      bootedAt ??= Math.ceil(Math.max(startedAt, verifiedFloor()) / 1000) * 1000
      return Math.max(0, bootedAt - now())
    },
    raise(verifiedMs) {
      if (verifiedMs > now() + MAX_SAMPLE_AGE_MS) return false
      raiseFloor(verifiedMs)
      return true
    },
    latestSample: () => Math.max(clock.now(), verifiedFloor()) + MAX_SAMPLE_AGE_MS,
    raiseBySample(verifiedMs) {
      sampled = Math.max(sampled, verifiedMs)
    },
  }
}

function timeUnknown(details?: string) {
  return new EnclaveError('time_unknown', 'the enclave does not know the time yet', { details })
}
