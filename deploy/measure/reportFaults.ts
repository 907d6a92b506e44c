import { MeasureError } from './MeasureError.ts'

/** Runs a command. Prints the faults of an error and sets exit code 2. */
export async function reportFaults(run: () => Promise<void>): Promise<void> {
  try {
    await run()
  } catch (error) {
    if (!(error instanceof MeasureError)) throw error
    for (const fault of error.faults) process.stderr.write(`${fault}\n`)
    process.exitCode = 2
  }
}
