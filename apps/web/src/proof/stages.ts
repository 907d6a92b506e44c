import type { ProofStatus } from '@countersign/protocol'

export type StageState = 'done' | 'current' | 'waiting' | 'failed' | 'never'

export type Stage = {
  id: 'signed' | 'pinned' | 'published' | 'complete'
  title: string
  state: StageState
  text: string
}

const states: Record<ProofStatus, readonly [StageState, StageState, StageState, StageState]> = {
  pending_pin: ['done', 'current', 'waiting', 'waiting'],
  pending_onchain: ['done', 'done', 'current', 'waiting'],
  complete: ['done', 'done', 'done', 'done'],
  pin_failed: ['done', 'failed', 'never', 'never'],
  onchain_failed: ['done', 'done', 'failed', 'never'],
}

const stages: readonly { id: Stage['id']; title: string; texts: Partial<Record<StageState, string>> }[] = [
  { id: 'signed', title: 'Signed', texts: { done: 'The enclave signed, and its hardware vouched for it.' } },
  {
    id: 'pinned',
    title: 'Pinned to IPFS',
    texts: {
      done: 'The receipt is public under its CID.',
      current: 'The receipt is being pinned.',
      failed: 'The service gave up pinning. Its operator can still export the receipt.',
    },
  },
  {
    id: 'published',
    title: 'Published on chain',
    texts: {
      done: 'An event points to the receipt.',
      current: 'The event is being published and confirmed.',
      failed: 'The event could not be published. The receipt can be verified all the same.',
    },
  },
  { id: 'complete', title: 'Complete', texts: { done: 'Nothing is left to do.' } },
]

const otherwise: Record<StageState, string> = {
  done: 'Done.',
  current: 'In progress.',
  waiting: 'Still to come.',
  failed: 'Failed.',
  never: 'Will not be reached.',
}

/** The life of a proof, as the service tells it. */
export function toStages(status: ProofStatus): Stage[] {
  return stages.map(({ id, title, texts }, index) => {
    const state = states[status][index] ?? 'waiting'
    return { id, title, state, text: texts[state] ?? otherwise[state] }
  })
}
