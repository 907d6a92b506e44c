import { ServiceError } from '@countersign/protocol'
import { type Step, type StepId, stepTitles } from './steps.ts'

/** Thrown inside a step: the check does not hold. The message is a plain sentence. */
export class StepFailure extends Error {
  override name = 'StepFailure'
  readonly code: string | undefined
  constructor(message: string, code?: string) {
    super(message)
    this.code = code
  }
}

/** Thrown inside a step: there is nothing to check against, or it could not be fetched. */
export class StepSkip extends Error {
  override name = 'StepSkip'
}

export type Transcript = {
  steps: Step[]
  /** Runs one check. It answers a sentence and what later steps need of it; a thrown error of ours becomes the outcome. */
  run<Value>(id: StepId, check: () => Awaitable<[detail: string, value: Value]>): Promise<Value | undefined>
}

type Awaitable<Value> = Value | Promise<Value>

export function createTranscript(onStep: (step: Step) => void = () => {}): Transcript {
  const steps: Step[] = []
  return {
    steps,
    async run(id, check) {
      const { value, ...outcome } = await runCheck(check)
      const step = { id, title: stepTitles[id], ...outcome }
      steps.push(step)
      onStep(step)
      return value
    },
  }
}

type Outcome<Value> = Omit<Step, 'id' | 'title'> & { value?: Value }

async function runCheck<Value>(check: () => Awaitable<[string, Value]>): Promise<Outcome<Value>> {
  try {
    const [detail, value] = await check()
    return { status: 'pass', detail, value }
  } catch (error) {
    if (error instanceof StepSkip) return { status: 'skip', detail: error.message }
    if (error instanceof StepFailure) {
      return { status: 'fail', detail: error.message, ...(error.code === undefined ? {} : { code: error.code }) }
    }
    if (!(error instanceof ServiceError)) throw error
    const detail = error.details === undefined ? error.message : `${error.message}: ${error.details}`
    return { status: 'fail', detail: `${detail}.`, code: error.code }
  }
}

/** The value of an earlier step, without which this one has nothing to look at. */
export function needs<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new StepSkip(`Not judged: ${what}.`)
  return value
}

export function failIf(condition: boolean, sentence: string, code?: string): void {
  if (condition) throw new StepFailure(sentence, code)
}
