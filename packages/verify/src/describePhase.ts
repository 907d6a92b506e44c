import type { Phase } from './loadReceipt.ts'

const phases: Readonly<Record<Phase, string>> = {
  chain: 'Searching the chain for the receipt.',
  proof: 'Loading the proof.',
  receipt: 'Downloading the receipt.',
  blocks: 'Downloading the receipt’s blocks.',
  collateral: 'Downloading the collateral.',
  steps: 'Running the checks.',
}

/** The current activity in words, for a reader who waits. */
export function describePhase(phase: Phase): string {
  return phases[phase]
}
