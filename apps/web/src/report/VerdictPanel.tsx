import { type Claim, describeVerdict, type Outcome, toPrintable, type VerdictContext } from '@countersign/verify'
import { type Mark, StatusMark } from './StatusMark.tsx'

const marks = { good: 'pass', warning: 'mock', bad: 'fail' } as const satisfies Record<string, Mark>

/** What the visitor's browser found, before all else. */
export function VerdictPanel(props: { outcome: Outcome; lies: readonly Claim[]; context: VerdictContext }) {
  const { outcome, lies, context } = props
  const { tone, title, sentence, notes } = describeVerdict(outcome, context)
  const { problems, verdict, steps, isMock } = outcome
  const first = steps.find(({ status }) => status === 'fail')
  return (
    <section className={`verdict verdict-${tone}`} aria-labelledby="verdict-title" data-verdict={verdict}>
      <p>
        <StatusMark mark={marks[tone]} text="Your browser’s verdict" />
      </p>
      <h2 id="verdict-title">{title}</h2>
      {isMock && !title.includes('MOCK') ? <MockNote /> : null}
      <p>{sentence}</p>
      {lies.map(({ member, text, detail }) => (
        <p key={member}>
          <strong>It says:</strong> {toPrintable(text)} <strong>Found:</strong> {toPrintable(detail)}
        </p>
      ))}
      {first === undefined ? null : (
        <p>
          <strong>{first.title}:</strong> does not hold. {toPrintable(first.detail)}
        </p>
      )}
      {problems.length === 0 ? null : (
        <ul>
          {problems.map((problem) => (
            <li key={problem}>{toPrintable(problem)}</li>
          ))}
        </ul>
      )}
      {notes.length === 0 ? null : (
        <details className="verdict-notes fine-print">
          <summary>What this rests on</summary>
          {notes.map((note) => (
            <p key={note}>{note}</p>
          ))}
        </details>
      )}
    </section>
  )
}

/** Simulated evidence must never be taken for hardware, whatever else the page says. */
function MockNote() {
  return (
    <p className="mock-note">
      <strong>MOCK</strong> Simulated silicon, for development. This evidence proves nothing about hardware.
    </p>
  )
}
