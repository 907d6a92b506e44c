import { ServiceError } from '@countersign/protocol'
import { type Step, type StepId, stepTitles } from './steps.ts'

/** Thrown inside a step: the check does not hold. The message is a plain sentence. */
export class StepFailure extends Error {
  override name = 'StepFailure'
}

/** Thrown inside a step: there is nothing to check against, or it could not be had. */
export class StepSkip extends Error {
  override name = 'StepSkip'
}

export type Transcript = {
  steps: Step[]
  /** Runs one check. It answers a sentence and what later steps need of it; a thrown error of ours becomes the outcome. */
  run<Value>(id: StepId, check: () => Awaitable<[detail: string, value: Value]>): Promise<Value | undefined>
}

type Awaitable<Value> = Value | Promise<Value>

export function createTranscript(): Transcript {
  const steps: Step[] = []
  return {
    steps,
    async run(id, check) {
      const title = stepTitles[id]
      try {
        const [detail, value] = await check()
        steps.push({ id, title, status: 'pass', detail })
        return value
      } catch (error) {
        if (error instanceof StepSkip) {
          steps.push({ id, title, status: 'skip', detail: error.message })
        } else if (error instanceof StepFailure) {
          steps.push({ id, title, status: 'fail', detail: error.message })
        } else if (error instanceof ServiceError) {
          const detail = error.details === undefined ? error.message : `${error.message}: ${error.details}`
          steps.push({ id, title, status: 'fail', detail: `${detail}.`, code: error.code })
        } else {
          throw error
        }
        return undefined
      }
    },
  }
}

/** The value of an earlier step, without which this one has nothing to look at. */
export function needs<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new StepSkip(`Not judged: ${what}.`)
  return value
}

export function failIf(condition: boolean, sentence: string): void {
  if (condition) throw new StepFailure(sentence)
}
