import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { toPath } from '@countersign/testing/launcher'

/** Builds the documentation site in a separate process. A coordinator that starts afterwards serves it. */
export async function buildDocs(): Promise<void> {
  await promisify(execFile)(process.execPath, ['-C', 'source', toPath('docs/site/main.ts')])
}
