import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that start whole stacks, browsers and processes, the slowest kind first. */
const SLOW = [
  /^e2e\//,
  /^dev\/main\./,
  /^trials\/(?:soak|faults|cluster|security|life)\//,
  /^services\/[^/]+\/src\/[^/]+\.test\.ts$/,
  /\.browser\.test\.tsx?$/,
  /^(?:apps|contracts|deploy|scripts)\//,
]

/**
 * Slow files first, so that no worker starts one after the others have finished. By default vitest only knows durations of earlier runs, and
 * a fresh checkout has none.
 */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const root = this.ctx.config.root
    const rank = ({ moduleId, project }: TestSpecification) => {
      // Together, at the end: a worker continues with the next file only if it is of the same kind.
      if (!project.config.isolate) return SLOW.length
      const path = relative(root, moduleId)
      const index = SLOW.findIndex((pattern) => pattern.test(path))
      return index < 0 ? SLOW.length : index
    }
    return (await super.sort(files)).toSorted((left, right) => rank(left) - rank(right))
  }
}
