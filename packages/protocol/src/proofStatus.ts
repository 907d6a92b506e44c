/** The five states of a proof: specification §2 and §3. */
export const proofStatuses = ['pending_pin', 'pending_onchain', 'complete', 'pin_failed', 'onchain_failed'] as const

export type ProofStatus = (typeof proofStatuses)[number]

/** The next states of a proof: the table of specification §3. */
export const proofTransitions = {
  /** The pin was accepted, or rejected in all retries. */
  pending_pin: ['pending_onchain', 'pin_failed'],
  /** The publication was confirmed, reverted, or can't be confirmed. */
  pending_onchain: ['complete', 'onchain_failed'],
  complete: [],
  pin_failed: [],
  onchain_failed: [],
} as const satisfies Record<ProofStatus, readonly ProofStatus[]>

/** A final state: polling stops here. */
export type TerminalProofStatus = 'complete' | 'pin_failed' | 'onchain_failed'

/** Whether a value is one of the five states. */
export function isProofStatus(value: unknown): value is ProofStatus {
  return typeof value === 'string' && Object.hasOwn(proofTransitions, value)
}

/** Whether this state is final. */
export function isTerminalProofStatus(status: ProofStatus): status is TerminalProofStatus {
  return proofTransitions[status].length === 0
}

/** Whether specification §3 allows this transition. */
export function isProofTransition(from: ProofStatus, to: ProofStatus): boolean {
  return (proofTransitions[from] as readonly ProofStatus[]).includes(to)
}
