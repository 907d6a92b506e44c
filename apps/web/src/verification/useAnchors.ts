import { useMemo, useState } from 'react'
import type { WebConfig } from '../config.ts'
import type { AnchorSource } from './describeVerdict.ts'
import { type OperatorTrust, readOperatorTrust } from './operatorTrust.ts'
import type { Trust } from './trust.ts'

export type Anchors = {
  operator: OperatorTrust
  source: AnchorSource
  /** What receipts are held against now. */
  trust: Trust
  chooseOperators(): void
  chooseOwn(trust: Trust): void
}

/** Whose anchors are used. The visitor's replace the operator's: added to them, they could never make a verdict stricter. */
export function useAnchors(config: WebConfig): Anchors {
  const operator = useMemo(() => readOperatorTrust(config), [config])
  const [own, setOwn] = useState<Trust | undefined>(undefined)
  return {
    operator,
    source: own === undefined ? 'operator' : 'visitor',
    trust: own ?? operator.trust,
    chooseOperators: () => setOwn(undefined),
    chooseOwn: setOwn,
  }
}
