import type { AnchorSource } from '@countersign/verify'
import { useMemo, useState } from 'react'
import type { WebConfig } from '../config.ts'
import { findContract, type OperatorTrust, readOperatorTrust, type Trust } from './trust.ts'

export type Anchors = {
  operator: OperatorTrust
  source: AnchorSource
  /** What receipts are held against now. */
  trust: Trust
  /** Whether the chain is asked through the node that the operator names. */
  isOperatorNode: boolean
  chooseOperators(): void
  chooseOwn(trust: Trust): void
}

/** Whose anchors are used. The visitor's replace the operator's: added to them, they could never make a verdict stricter. */
export function useAnchors(config: WebConfig): Anchors {
  const operator = useMemo(() => readOperatorTrust(config), [config])
  const [own, setOwn] = useState<Trust | undefined>(undefined)
  const trust = own ?? operator.trust
  return {
    operator,
    source: own === undefined ? 'operator' : 'visitor',
    trust,
    isOperatorNode: findContract(trust) !== undefined && trust.node?.rpcUrl === operator.trust.node?.rpcUrl,
    chooseOperators: () => setOwn(undefined),
    chooseOwn: setOwn,
  }
}
