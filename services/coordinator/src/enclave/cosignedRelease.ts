import type { ReleaseRequest } from '@countersign/protocol'

/** A cosigned note as a release names it: the checkpoint as the enclave gave it, and the lines of witnesses. The log's own line is the first. */
export function toCosigned(note: string): Required<Pick<ReleaseRequest, 'checkpoint' | 'cosignatures'>> {
  const end = note.lastIndexOf('\n\n') + '\n\n'.length
  const [log = '', ...cosignatures] = note.slice(end).trimEnd().split('\n')
  return { checkpoint: `${note.slice(0, end)}${log}\n`, cosignatures }
}
