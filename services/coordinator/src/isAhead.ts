/**
 * Whether a moment that was set `spanMs` ahead, or less, is still to come. One that is further off was set by a clock that has been put
 * back since: to wait for it could take as long as that clock was wrong.
 */
export function isAhead(moment: number, { now, spanMs }: { now: number; spanMs: number }): boolean {
  return now < moment && moment - now <= spanMs
}
