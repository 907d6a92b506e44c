import { isNatural } from './fields.ts'

/** Whether a quorum is more than half of so many, and can be had: any two quorums then have a member in common. */
export function isMajority(quorum: unknown, count: number): quorum is number {
  return isNatural(quorum) && 2 * quorum > count && quorum <= count
}
