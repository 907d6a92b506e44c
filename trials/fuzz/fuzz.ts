import { ServiceError } from '@countersign/protocol'
import fc from 'fast-check'
import { count, type Outcome, seed, type Trial, type TrialDeps, type Values } from '../trial.ts'
import { createEvidenceSubjects } from './evidenceSubjects.ts'
import { createLogSubjects } from './logSubjects.ts'
import { createReceiptSubjects } from './receiptSubjects.ts'
import type { Subject } from './subject.ts'
import { createVaultSubjects } from './vaultSubjects.ts'

/** All parsers of third-party input. */
export async function createSubjects(): Promise<Subject[]> {
  return [
    ...createEvidenceSubjects(),
    ...(await createReceiptSubjects()),
    ...createVaultSubjects(),
    ...createLogSubjects(),
  ]
}

const options = {
  runs: count(100_000, 'inputs in total, divided among the parsers'),
  seed: seed('chooses the inputs'),
}
type Options = Values<typeof options>

export const fuzzTrial: Trial = {
  summary: `Feeds random and mutated bytes to every parser of the verifier, and replaces members of receipts. A parser must return or throw a typed error.`,
  options,
  example: '--runs 1000 --seed 7',
  run: runFuzz,
}

export async function runFuzz({ say }: Pick<TrialDeps, 'say'>, { runs, seed }: Options): Promise<Outcome> {
  const subjects = await createSubjects()
  const share = Math.ceil(runs / subjects.length)
  const faults: string[] = []
  for (const subject of subjects) {
    const fault = await fuzz(subject, { runs: share, seed }).then(
      () => undefined,
      (error: Error) => `${subject.name}: ${error.message}`,
    )
    if (fault === undefined) say(`${subject.name}: ${share} inputs, no untyped errors`)
    else faults.push(fault)
  }
  const peakMib = Math.round(process.resourceUsage().maxRSS / 1024)
  return { faults, figures: { inputs: share * subjects.length, parsers: subjects.length, peakMib } }
}

/** Random bytes, or valid ones with some bytes changed, removed or inserted. */
function mutate(seeds: Uint8Array[]): fc.Arbitrary<Uint8Array<ArrayBuffer>> {
  const edit = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    remove: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat(64)),
    insert: fc.oneof(
      { weight: 4, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 1 }) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 64 }) },
    ),
    overwrite: fc.boolean(),
  })
  const mutated = fc
    .tuple(fc.constantFrom(...seeds), fc.array(edit, { minLength: 1, maxLength: 6 }))
    .map(([seed, edits]) => {
      let bytes = Buffer.from(seed)
      for (const { at, remove, insert, overwrite } of edits) {
        const position = Math.floor(at * bytes.length)
        const resume = position + (overwrite ? insert.length : remove)
        bytes = Buffer.concat([bytes.subarray(0, position), insert, bytes.subarray(resume)])
      }
      return new Uint8Array(bytes)
    })
  const random = fc.uint8Array({ maxLength: 2048 }).map((bytes) => new Uint8Array(bytes))
  return fc.oneof({ weight: 3, arbitrary: mutated }, { weight: 1, arbitrary: random })
}

/** A parser must return or throw a typed error for any input. Throws with a small counterexample otherwise. */
export async function fuzz(subject: Subject, { runs, seed }: { runs: number; seed: number }) {
  const inputs = 'inputs' in subject ? subject.inputs : mutate(subject.seeds)
  const property = fc.asyncProperty(inputs, async (bytes) => {
    try {
      await subject.parse(bytes)
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
    }
  })
  // Far longer than any parser needs: a parser that hangs fails here.
  await fc.assert(property, { numRuns: runs, seed, interruptAfterTimeLimit: 600_000, markInterruptAsFailure: true })
}
