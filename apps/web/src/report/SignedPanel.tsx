import { describeSigned, nameSigned, type Outcome } from '@countersign/verify'
import { Address } from '../ui/Address.tsx'
import { toDateTime } from '../words/format.ts'

const ADDRESS = /(0x[0-9a-fA-F]{40})/

/** What was signed, in words. Of an off-chain signature that is what an opening shows. */
export function SignedPanel({ outcome }: { outcome: Outcome }) {
  const { receipt, content } = outcome
  if (receipt === undefined) return null
  const { title, sentence, warnings, facts } = describeSigned({ ...outcome, receipt }, { toTime: toDateTime })
  return (
    <section className="card signed" aria-labelledby="signed-title">
      <h2 id="signed-title">{nameSigned(outcome)}</h2>
      <h3>{title}</h3>
      <p className="signed-sentence">{sentence.split(ADDRESS).map(toPart)}</p>
      {warnings.map((warning) => (
        <p key={warning} className="signed-warning">
          <strong>Warning:</strong> {warning}
        </p>
      ))}
      <details open={content !== undefined}>
        <summary>Field by field</summary>
        <dl className="evidence-facts">
          {facts.map(({ name, value }) => (
            <div key={`${name} ${value}`}>
              <dt>{name}</dt>
              <dd className="signed-value">{value}</dd>
            </div>
          ))}
        </dl>
      </details>
    </section>
  )
}

/** Addresses in a sentence are broken evenly. */
function toPart(part: string, index: number) {
  return ADDRESS.test(part) ? <Address key={index} address={part} /> : part
}
