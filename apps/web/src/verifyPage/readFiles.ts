import { type GivenFile, MAX_COLLATERAL_BYTES } from '@countersign/verify'
import { SubjectFault } from './SubjectFault.ts'

/** A receipt and perhaps its collateral, to the byte. */
export async function readFiles(files: readonly File[]): Promise<GivenFile[]> {
  if (files.length > 2) throw new SubjectFault('Too many files', 'Give one receipt, and its collateral if you have it.')
  return Promise.all(
    files.map(async (file) => {
      if (file.size === 0) throw new SubjectFault('An empty file', `${file.name} has nothing in it.`)
      if (file.size > MAX_COLLATERAL_BYTES) {
        throw new SubjectFault('Too large a file', `${file.name} has ${file.size} bytes; no receipt or collateral has.`)
      }
      return { name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) }
    }),
  )
}
