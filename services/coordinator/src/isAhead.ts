/**
 * Whether a time in the future is at most `spanMs` ahead. A time further ahead was set by a clock that has been corrected since, and waiting
 * for it could take very long.
 */
export function isAhead(moment: number, { now, spanMs }: { now: number; spanMs: number }): boolean {
  return now < moment && moment - now <= spanMs
}
