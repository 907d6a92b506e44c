import { MAX_OPENING_BYTES } from '@countersign/protocol'
import { useState } from 'react'
import { Fold } from '../ui/Fold.tsx'
import { PasteField } from '../ui/PasteField.tsx'

const TOO_LARGE = 'This is too large for an opening.'

/** Takes an opening, by file or pasted. It stays in this tab: nothing of it is sent, stored or logged. */
export function OpeningForm({ onOpen }: { onOpen: (opening: Uint8Array<ArrayBuffer>) => void }) {
  const [fault, setFault] = useState<string | undefined>(undefined)

  function open(opening: Uint8Array<ArrayBuffer>): string | undefined {
    if (opening.length > MAX_OPENING_BYTES) return TOO_LARGE
    onOpen(opening)
  }

  function take(text: string): string | undefined {
    setFault(undefined)
    return text.trim() === '' ? 'Paste the opening first.' : open(new TextEncoder().encode(text))
  }

  async function choose(file: File | undefined) {
    if (file === undefined) return
    setFault(file.size > MAX_OPENING_BYTES ? TOO_LARGE : open(new Uint8Array(await file.arrayBuffer())))
  }

  return (
    <Fold title="Show what was signed" note="With the opening that its owner has">
      <p>
        Neither the content nor the signature of this kind is public. If you have its opening, your browser checks that
        it belongs to this receipt. It stays in this tab: it is not sent anywhere, and not kept.
      </p>
      <p>
        <label htmlFor="opening-file">The opening’s file</label>{' '}
        <input
          id="opening-file"
          type="file"
          accept=".json,application/json"
          onClick={({ currentTarget }) => {
            // The same file chosen again is a question again.
            currentTarget.value = ''
          }}
          onChange={({ target }) => void choose(target.files?.[0])}
        />
      </p>
      {fault === undefined ? null : (
        <p className="field-error" role="alert">
          {fault}
        </p>
      )}
      <PasteField
        id="opening-text"
        label="Or paste the opening"
        hint="JSON, with one half or both"
        action="Check the opening"
        take={take}
      />
    </Fold>
  )
}

/** Whether a verification that has ended is of a signature that an opening could show. */
export function canOpen(receipt: object | undefined): boolean {
  return receipt !== undefined && 'kind' in receipt && receipt.kind === 'off-chain'
}
