import { createRandom, type Random } from '../../packages/protocol/fuzz/random.ts'
import { describeOutcome } from './compareAnswer.ts'
import { type DrawnReceipt, drawReceipt } from './drawReceipt.ts'
import { mutateReceipt } from './mutateReceipt.ts'
import type { Outcome, Request } from './protocol.ts'
import { AnswerError, startVerifier, type Verifier } from './startVerifier.ts'

type Difference = { index: number; request: Request; answers: [string, string] }

/** Enough to keep both commands busy. */
const PENDING = 8

/** Gives random receipts to two verifiers, and compares their answers. The same seed and index give the same receipt. */
export async function compareVerifiers(parameters: {
  commands: readonly [readonly string[], readonly string[]]
  seed: number
  indices: readonly number[]
  /** Stops before the next receipt. */
  signal?: AbortSignal
  onDifference?: (difference: Difference) => void
  onProgress?: (done: number) => void
  onAnswers?: (answers: readonly string[]) => void
}) {
  const { commands, seed, indices, signal, onDifference, onProgress, onAnswers } = parameters
  const verifiers = commands.map((command) => startVerifier(command)) as [Verifier, Verifier]
  const outcomes = new Map<string, number>()
  const drawn = new Map<number, Promise<DrawnReceipt>>()
  let [done, differences, unchecked] = [0, 0, 0]

  /** More receipts, the longer the run is: drawing one takes much longer than changing it. */
  const getDrawn = ({ below }: Random, index: number) => {
    const place = below(Math.ceil(2 * Math.sqrt(index + 1)))
    const receipt = drawn.get(place) ?? drawReceipt(createRandom(seed * 1_000_003 + place))
    drawn.set(place, receipt)
    return receipt
  }

  async function compare(index: number) {
    const random = createRandom((seed + 1) * 1_000_000_007 + index)
    const request = {
      id: index,
      ...mutateReceipt(random, await getDrawn(random, index), await getDrawn(random, index)),
    }
    const found = await Promise.all(verifiers.map((verifier) => ask(verifier, request)))
    onAnswers?.(found.map((one) => JSON.stringify(one)))
    const answers = found.map((one) => (typeof one === 'string' ? one : describeOutcome(one))) as [string, string]
    outcomes.set(answers[0], (outcomes.get(answers[0]) ?? 0) + 1)
    done += 1
    if (answers[0] === answers[1]) return
    if (isUnchecked(found[0], found[1])) {
      unchecked += 1
      return
    }
    differences += 1
    onDifference?.({ index, request, answers })
  }

  const progress = setInterval(() => onProgress?.(done), 10_000)
  const rest = indices.values()
  await Promise.all(
    Array.from({ length: PENDING }, async () => {
      for (const index of rest) {
        if (signal?.aborted) return
        await compare(index)
      }
    }),
  )
  clearInterval(progress)
  for (const verifier of verifiers) verifier.close()
  return { outcomes, differences, unchecked }
}

async function ask(verifier: Verifier, request: Request): Promise<Outcome | string> {
  try {
    return await verifier.check(request)
  } catch (error) {
    if (error instanceof AnswerError) return error.message
    throw error
  }
}

/** Whether the second verifier doesn't check the step that fails first for the first one. */
function isUnchecked(own: Outcome | string | undefined, other: Outcome | string | undefined): boolean {
  if (typeof own !== 'object' || typeof other !== 'object' || 'error' in own || 'error' in other) return false
  const first = Object.keys(own.steps).find((id) => own.steps[id] === 'fail')
  return first !== undefined && other.steps[first] === 'unchecked'
}
