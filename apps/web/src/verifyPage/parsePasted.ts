import { type NamedSubject, recogniseSubject, VerifierError } from '@countersign/verify'

/** What a visitor pasted, or why it names no receipt. */
export type Pasted = NamedSubject | { kind: 'unknown'; reason: string }

/** People paste with white space around it. */
export function parsePasted(input: string): Pasted {
  const text = input.trim()
  if (text === '') return { kind: 'unknown', reason: 'Paste something first.' }
  try {
    return recogniseSubject(text)
  } catch (error) {
    if (!(error instanceof VerifierError)) throw error
    const reason = error.details ?? error.message
    return { kind: 'unknown', reason: `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.` }
  }
}
