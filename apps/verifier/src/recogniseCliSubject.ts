import { type NamedSubject, recogniseSubject, VerifierError } from '@countersign/verify'
import { isPathTaken } from './files.ts'

export type CliSubject = NamedSubject | { kind: 'file'; path: string }

/** A file that exists wins over every other reading of its name, but for a web address. */
export async function recogniseCliSubject(text: string): Promise<CliSubject> {
  if (!/^https?:\/\//i.test(text) && (await isPathTaken(text))) return { kind: 'file', path: text }
  // A link may have a secret in it, which is not repeated.
  if (!/^[a-z][a-z0-9+.-]*:/i.test(text) && /\.(?:json|car)$|^\.{0,2}\//i.test(text)) {
    throw new VerifierError('invalid_arguments', 'cannot tell what to verify', { details: `there is no file ${text}` })
  }
  return recogniseSubject(text)
}
