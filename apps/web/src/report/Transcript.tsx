import {
  describeStep,
  isMockStep,
  isSimulated,
  type StepContext,
  stepGroups,
  toPrintable,
  type VerifierStep,
} from '@countersign/verify'
import { useId, useState } from 'react'
import { type Mark, StatusMark } from './StatusMark.tsx'

/** Every step, in the order of the checking, with what its outcome means and what was found. */
export function Transcript({ steps, context }: { steps: readonly VerifierStep[]; context: StepContext }) {
  const groups = stepGroups
    .map(({ title, ids }) => ({ title, steps: steps.filter(({ id }) => ids.includes(id)) }))
    .filter((group) => group.steps.length > 0)
  const [isDetailed, setDetailed] = useState(false)
  const toggle = useId()
  return (
    <section className="card" aria-labelledby="transcript-title">
      <h2 id="transcript-title">The checks, step by step</h2>
      <p>{count(steps)}</p>
      <p className="transcript-toggle">
        <input
          id={toggle}
          type="checkbox"
          checked={isDetailed}
          onChange={({ target }) => setDetailed(target.checked)}
        />
        <label htmlFor={toggle}>Show the technical findings of every step</label>
      </p>
      {groups.map((group) => (
        <div className="transcript-group" key={group.title}>
          <h3>{group.title}</h3>
          <ol className="transcript">
            {group.steps.map((step) => (
              <StepRow key={step.id} step={step} context={context} isDetailed={isDetailed} />
            ))}
          </ol>
        </div>
      ))}
    </section>
  )
}

/** Findings of a step that simply passed are for those who ask; all others explain themselves. */
function StepRow({ step, context, isDetailed }: { step: VerifierStep; context: StepContext; isDetailed: boolean }) {
  const { id, title, status, detail, code } = step
  const mark: Mark = isSimulated(step, context) ? 'mock' : status
  const isPlain = status === 'pass' && !isMockStep(step)
  return (
    <li className={`transcript-step transcript-step-${mark}`} data-step={id} data-status={status}>
      <StatusMark mark={mark} />
      <div>
        <h4>{title}</h4>
        <p>{describeStep(step, context)}</p>
        {isPlain && !isDetailed ? null : (
          <p className="transcript-detail">
            {toPrintable(detail)}
            {code === undefined ? null : <code> {code}</code>}
          </p>
        )}
      </div>
    </li>
  )
}

export function count(steps: readonly VerifierStep[]): string {
  const number = (status: VerifierStep['status']) => steps.filter((step) => step.status === status).length
  return `${steps.length} steps: ${number('pass')} passed, ${number('fail')} failed, ${number('skip')} not judged.`
}
