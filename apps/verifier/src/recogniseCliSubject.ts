import { type NamedSubject, recogniseSubject } from '@countersign/verify'
import { isPathTaken } from './readFileBounded.ts'

export type CliSubject = NamedSubject | { kind: 'file'; path: string }

/** A file that exists wins over every other reading of its name, but for a web address. */
export async function recogniseCliSubject(text: string): Promise<CliSubject> {
  if (!/^https?:\/\//i.test(text) && (await isPathTaken(text))) return { kind: 'file', path: text }
  return recogniseSubject(text)
}
