import { isMissing, isSimulated, type VerifierStep } from '@countersign/verify'

export type Mark = 'pass' | 'fail' | 'skip' | 'mock' | 'wait'

const paths: Record<Mark, string> = {
  pass: 'M5 10.5l3.2 3.2L15 7',
  fail: 'M6 6l8 8M14 6l-8 8',
  skip: 'M6 10h8',
  mock: 'M10 5v6M10 14.2v.3',
  wait: 'M10 6v4l2.6 1.6',
}

const words: Record<Mark, string> = {
  pass: 'Passed',
  fail: 'Failed',
  skip: 'Skipped',
  mock: 'Passed (MOCK)',
  wait: 'Waiting',
}

const tones: Record<Mark, string> = { pass: 'tone-good', fail: 'tone-bad', skip: '', mock: 'tone-warning', wait: '' }

/** An outcome as shape and word, so that it doesn't depend on color. */
export function StatusMark({ mark, text = words[mark] }: { mark: Mark; text?: string }) {
  return (
    <span className={`status-mark status-mark-${mark} ${tones[mark]}`}>
      <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
        <path d={paths[mark]} />
      </svg>
      {text}
    </span>
  )
}

export function toMark(step: VerifierStep, { isMock }: { isMock: boolean }): Mark {
  return isSimulated(step, { isMock }) ? 'mock' : step.status
}

/** The group's worst mark. A skipped step that counts outranks passed steps. Undefined before the first step. */
export function findWorst(steps: readonly VerifierStep[], { isMock }: { isMock: boolean }): Mark | undefined {
  const marks = steps.map((step) => toMark(step, { isMock }))
  const order: Mark[] = ['fail', 'mock', ...(steps.some(isMissing) ? [] : ['pass' as const]), 'skip']
  return order.find((mark) => marks.includes(mark))
}
