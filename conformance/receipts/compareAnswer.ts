import type { Outcome } from './protocol.ts'

/** `unchecked`: the verifier says that it has no implementation of the step that must fail. */
export type Comparison = { result: 'passed' | 'failed' | 'unchecked'; unchecked: string[]; faults: string[] }

/** Compares an answer with the expected one. Steps that the expectation doesn't list may have any status. */
export function compareAnswer(expected: Outcome, actual: Outcome): Comparison {
  if ('error' in expected || 'error' in actual) {
    const [wanted, found] = [describeOutcome(expected), describeOutcome(actual)]
    const isEqual = 'error' in expected && 'error' in actual && wanted === found
    return isEqual ? conclude([]) : conclude([`expected ${wanted}, found ${found}`])
  }
  const statusOf = (id: string) => actual.steps[id] ?? 'skip'
  const unchecked = Object.keys(actual.steps).filter((id) => statusOf(id) === 'unchecked')
  const wrong = Object.entries(expected.steps).filter(
    ([id, status]) => statusOf(id) !== status && !unchecked.includes(id),
  )
  const faults = wrong.map(([id, status]) => `${id}: expected ${status}, found ${statusOf(id)}`)
  if (unchecked.some((id) => expected.steps[id] === 'fail')) return { ...conclude(faults, unchecked, 'unchecked') }
  for (const [id, code] of Object.entries(expected.codes ?? {})) {
    const found = actual.codes?.[id]
    if (found !== code) faults.push(`${id}: expected code ${code}, found ${found ?? 'none'}`)
  }
  if (actual.verdict !== expected.verdict) faults.push(`verdict: expected ${expected.verdict}, found ${actual.verdict}`)
  return conclude(faults, unchecked)
}

function conclude(faults: string[], unchecked: string[] = [], otherwise: Comparison['result'] = 'passed'): Comparison {
  return { result: faults.length > 0 ? 'failed' : otherwise, unchecked, faults }
}

/** Steps in the order of receipt-v2.md, which includes those of version 1. */
const ORDER =
  'format cid blocks opening digest signature tx-hash statement log vault-policy vault-rule vault-approvals vault-budget inclusion collateral quote report-data quote-policy platform measurement config entropy entropy-key coordinator-report coordinator-policy coordinator-chip coordinator-revocation coordinator-key coordinator-measurement coordinator-config release event transaction time time-bound reevaluation'.split(
    ' ',
  )

/** The verdict, the first step that fails, and its code: two verifiers must agree on this for any input. */
export function describeOutcome(outcome: Outcome): string {
  if ('error' in outcome) return `error ${outcome.error}`
  const first = ORDER.find((id) => outcome.steps[id] === 'fail')
  if (first === undefined) return outcome.verdict
  // The only step with codes in the specification.
  const code = first === 'vault-budget' ? outcome.codes?.[first] : undefined
  return `${outcome.verdict} at ${first}${code === undefined ? '' : ` (${code})`}`
}
