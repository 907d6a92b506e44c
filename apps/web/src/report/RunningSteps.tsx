import { isMockStep, isSimulated, type VerifierStep } from '@countersign/verify'
import { StatusMark } from './StatusMark.tsx'

/** The steps that have finished so far, while the others run. What they mean is said once the verdict is known. */
export function RunningSteps({ steps }: { steps: readonly VerifierStep[] }) {
  if (steps.length === 0) return null
  const isMock = steps.some(isMockStep)
  return (
    <ol className="transcript running-steps" aria-label="Finished steps">
      {steps.map((step) => {
        const mark = isSimulated(step, { isMock }) ? 'mock' : step.status
        return (
          <li key={step.id} className={`transcript-step transcript-step-${mark}`} data-running-step={step.id}>
            <StatusMark mark={mark} />
            <span>{step.title}</span>
          </li>
        )
      })}
    </ol>
  )
}
