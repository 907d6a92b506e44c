import type { SubjectFile } from '../verification/verifySubject.ts'
import { SubjectFault } from './SubjectFault.ts'

/** More than any receipt or collateral; what is larger is neither, and is not read. */
const MAX_FILE_BYTES = 8_388_608

/** A receipt and perhaps its collateral, to the byte. */
export async function readFiles(files: readonly File[]): Promise<SubjectFile[]> {
  if (files.length > 2) throw new SubjectFault('Too many files', 'Give one receipt, and its collateral if you have it.')
  return Promise.all(
    files.map(async (file) => {
      if (file.size === 0) throw new SubjectFault('An empty file', `${file.name} has nothing in it.`)
      if (file.size > MAX_FILE_BYTES) {
        throw new SubjectFault('Too large a file', `${file.name} has ${file.size} bytes; no receipt or collateral has.`)
      }
      return { name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) }
    }),
  )
}
