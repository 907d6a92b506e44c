import { MAX_OPENING_BYTES } from '@countersign/protocol'
import { type FormEvent, useState } from 'react'
import { Field } from '../ui/Field.tsx'
import { Fold } from '../ui/Fold.tsx'

/** Takes an opening, by file or pasted. It stays in this tab: nothing of it is sent, stored or logged. */
export function OpeningForm({ onOpen }: { onOpen: (opening: Uint8Array<ArrayBuffer>) => void }) {
  const [text, setText] = useState('')
  const [fault, setFault] = useState<string | undefined>(undefined)

  function open(opening: Uint8Array<ArrayBuffer>) {
    const isTooLarge = opening.length > MAX_OPENING_BYTES
    setFault(isTooLarge ? 'This is too large for an opening.' : undefined)
    if (!isTooLarge) onOpen(opening)
  }

  function submit(event: FormEvent) {
    event.preventDefault()
    if (text.trim() === '') return setFault('Paste the opening first.')
    open(new TextEncoder().encode(text))
  }

  async function choose(file: File | undefined) {
    if (file === undefined) return
    if (file.size > MAX_OPENING_BYTES) return setFault('This is too large for an opening.')
    open(new Uint8Array(await file.arrayBuffer()))
  }

  return (
    <Fold title="Show what was signed" note="With the opening that its owner has">
      <p>
        Neither the content nor the signature of this kind is public. If you have its opening, your browser checks that
        it belongs to this receipt. It stays in this tab: it is not sent anywhere, and not kept.
      </p>
      <form onSubmit={submit} noValidate>
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
        <Field id="opening-text" label="Or paste the opening" error={fault} hint="JSON, with one half or both">
          {(control) => (
            <textarea
              {...control}
              rows={4}
              autoComplete="off"
              spellCheck={false}
              value={text}
              onChange={({ target }) => setText(target.value)}
            />
          )}
        </Field>
        <p className="actions">
          <button type="submit" className="button">
            Check the opening
          </button>
        </p>
      </form>
    </Fold>
  )
}

/** Whether a verification that has ended is of a signature that an opening could show. */
export function canOpen(receipt: object | undefined): boolean {
  return receipt !== undefined && 'kind' in receipt && receipt.kind === 'off-chain'
}
