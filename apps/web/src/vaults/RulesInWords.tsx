import { describePolicy, type Policy } from '@countersign/policy'
import { useMemo } from 'react'

/** What a vault allows, in words. */
export function RulesInWords({ policy }: { policy: Policy }) {
  const { summary, rules, notes } = useMemo(() => describePolicy(policy), [policy])
  return (
    <div className="vault-rules">
      <p className="fact-strong">{summary}.</p>
      <h4>{rules.length === 1 ? 'The rule' : 'The rules'}</h4>
      <ol>
        {rules.map((rule) => (
          <li key={rule}>{rule}</li>
        ))}
      </ol>
      <p>Whatever no rule allows is refused.</p>
      <h4>What that means</h4>
      <ul>
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </div>
  )
}
