import { createEvidenceSubjects } from './evidenceSubjects.ts'
import type { Subject } from './fuzz.ts'
import { createLogSubjects } from './logSubjects.ts'
import { createReceiptSubjects } from './receiptSubjects.ts'
import { createVaultSubjects } from './vaultSubjects.ts'

/** Every parser that bytes of strangers reach. */
export async function createSubjects(): Promise<Subject[]> {
  return [
    ...createEvidenceSubjects(),
    ...(await createReceiptSubjects()),
    ...createVaultSubjects(),
    ...createLogSubjects(),
  ]
}
