import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { toMeasurementText, toMinimumTcbTexts } from '@countersign/verify'
import { onTestFinished } from 'vitest'
import { type FakeIssue, issue } from '../../../packages/verify/test/issues.ts'

/** The honest service. Readers know its receipt. */
export const honest = await issue()

/** Options with every anchor of an issue. */
export function toFlags({ anchors }: FakeIssue): string[] {
  return [
    ...anchors.measurements.flatMap((measurement) => ['--measurement', toMeasurementText(measurement)]),
    ...anchors.configHashes.flatMap((hash) => ['--config-hash', hash]),
    ...anchors.coordinatorMeasurements.flatMap((hash) => ['--coordinator-measurement', hash]),
    ...toMinimumTcbTexts(anchors.coordinatorMinimumTcb).flatMap((text) => ['--coordinator-tcb', text]),
    ...anchors.coordinatorChips.flatMap((chip) => ['--coordinator-chip', chip]),
    ...anchors.coordinatorConfigHashes.flatMap((hash) => ['--coordinator-config-hash', hash]),
    ...anchors.entropyKeys.flatMap((key) => ['--entropy-key', key]),
  ]
}

/** Creates a folder with these files. It's removed after the test. */
export async function createFolder(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-verifier-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content)
  return folder
}
