import { formatNote, formatSignatureLines, type NoteSignature, parseNote } from '@countersign/log'
import type { ReleaseRequest } from '@countersign/protocol'

/** A cosigned note as a release names it: the checkpoint as the enclave gave it, and the lines of witnesses. The log's own line is the first. */
export function toCosigned(note: string): Required<Pick<ReleaseRequest, 'checkpoint' | 'cosignatures'>> {
  const { text, signatures } = parseNote(note)
  const [log, ...witnesses] = signatures as [NoteSignature, ...NoteSignature[]]
  return {
    checkpoint: formatNote({ text, signatures: [log] }),
    cosignatures: witnesses.map((line) => formatSignatureLines([line]).trimEnd()),
  }
}
