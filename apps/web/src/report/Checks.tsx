import {
  describeStep,
  groupSteps,
  isMockStep,
  type StepContext,
  type StepGroup,
  toPrintable,
  type VerifierStep,
} from '@countersign/verify'
import { findWorst, type Mark, StatusMark, toMark } from './StatusMark.tsx'

type ChecksProps = {
  /** While the checks run, the finished ones. */
  steps: readonly VerifierStep[]
  /** Undefined while the checks run. Explanations appear at the end. */
  context: StepContext | undefined
}

/** Every check, in six groups. Groups with failures are open. */
export function Checks({ steps, context }: ChecksProps) {
  return (
    <section className="card checks" aria-labelledby="checks-title" aria-busy={context === undefined}>
      <h2 id="checks-title">Checks</h2>
      <p className="fine-print">{context === undefined ? `${steps.length} done so far.` : countSteps(steps)}</p>
      <div className="check-groups">
        {groupSteps(steps).map((group) => (
          <Group key={group.title} group={group} context={context} isMock={context?.isMock ?? steps.some(isMockStep)} />
        ))}
      </div>
    </section>
  )
}

function Group(props: { group: StepGroup; context: StepContext | undefined; isMock: boolean }) {
  const { group, context, isMock } = props
  const { title, steps } = group
  const marks = steps.map((step) => toMark(step, { isMock }))
  const mark = findWorst(steps, { isMock })
  // Groups that weren't reached after a failure have no steps.
  if (mark === undefined && context !== undefined) return null
  return (
    <details className="check-group" open={mark === 'fail'} data-group={title} data-mark={mark}>
      <summary>
        <StatusMark mark={mark ?? 'wait'} text="" />
        <h3>{title}</h3>
        <span className="ticks" aria-hidden="true">
          {steps.map((step) => (
            <span key={step.id} className={`tick tick-${toMark(step, { isMock })}`} />
          ))}
        </span>
        <span className="visually-hidden">{countMarks(marks)}</span>
        {mark === 'fail' ? <span className="check-failed">{countFailed(marks)}</span> : null}
      </summary>
      <ol className="transcript">
        {steps.map((step) => (
          <StepRow key={step.id} step={step} mark={toMark(step, { isMock })} context={context} />
        ))}
      </ol>
    </details>
  )
}

function StepRow(props: { step: VerifierStep; mark: Mark; context: StepContext | undefined }) {
  const { step, mark, context } = props
  const { id, title, status, detail, code } = step
  const name = context === undefined ? { 'data-running-step': id } : { 'data-step': id }
  return (
    <li className={`transcript-step transcript-step-${mark}`} {...name} data-status={status}>
      <StatusMark mark={mark} />
      <div>
        <h4>{title}</h4>
        {context === undefined ? null : (
          <>
            <p>{describeStep(step, context)}</p>
            <p className="transcript-detail">
              {toPrintable(detail)}
              {code === undefined ? null : <code> {code}</code>}
            </p>
          </>
        )}
      </div>
    </li>
  )
}

function countMarks(marks: readonly Mark[]): string {
  const mock = marks.includes('mock') ? ', on MOCK evidence' : ''
  const passed = marks.filter((mark) => mark === 'pass' || mark === 'mock').length
  return marks.length === 0 ? 'Waiting' : `${passed} of ${marks.length} passed${mock}`
}

function countFailed(marks: readonly Mark[]): string {
  return `${marks.filter((mark) => mark === 'fail').length} failed`
}

export function countSteps(steps: readonly VerifierStep[]): string {
  const number = (status: VerifierStep['status']) => steps.filter((step) => step.status === status).length
  return `${steps.length} checks: ${number('pass')} passed, ${number('fail')} failed, ${number('skip')} skipped.`
}
