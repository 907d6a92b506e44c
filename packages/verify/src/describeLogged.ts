import type { Logged } from '@countersign/receipt'
import type { Fact } from './contentWords.ts'
import { toPrintable } from './toPrintable.ts'

/** Where the signature is in a log, and who cosigned it; nothing where that is not proved. */
export function describeLogged(logged: Logged | undefined, toTime: (time: string) => string): Fact[] {
  if (logged === undefined) return []
  const { origin, index, size, cosigners, witnesses, quorum, cosignedAt } = logged
  return [
    { name: 'Log', value: `entry ${index} of ${toPrintable(origin)}, in a tree of ${size}` },
    { name: 'Witnesses', value: `${cosigners.length} of ${witnesses} cosigned it; ${quorum} are enough` },
    { name: 'Cosigned', value: `by ${toTime(cosignedAt)}, by the witnesses’ own clocks` },
  ]
}
