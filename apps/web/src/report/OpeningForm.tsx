import { MAX_OPENING_BYTES } from '@countersign/protocol'
import { useState } from 'react'
import { Fold } from '../ui/Fold.tsx'
import { PasteField } from '../ui/PasteField.tsx'

const TOO_LARGE = 'This is too large to be an opening.'

type OpeningFormProps = {
  onOpen: (opening: Uint8Array<ArrayBuffer>) => void
  /** Whether the opening shows the owner of an address. */
  isAddress?: boolean
}

/** Accepts an opening as a file or text. It's never sent, stored or logged. */
export function OpeningForm({ onOpen, isAddress = false }: OpeningFormProps) {
  const [fault, setFault] = useState<string | undefined>(undefined)

  function open(opening: Uint8Array<ArrayBuffer>): string | undefined {
    if (opening.length > MAX_OPENING_BYTES) return TOO_LARGE
    onOpen(opening)
  }

  function submit(text: string): string | undefined {
    setFault(undefined)
    return text.trim() === '' ? 'Paste the opening.' : open(new TextEncoder().encode(text))
  }

  async function choose(file: File | undefined) {
    if (file === undefined) return
    setFault(file.size > MAX_OPENING_BYTES ? TOO_LARGE : open(new Uint8Array(await file.arrayBuffer())))
  }

  return (
    <Fold
      title={isAddress ? 'Show the owner' : 'Show what was signed'}
      note={
        isAddress ? 'Requires the opening from the address’s owner' : 'Requires the opening from the wallet’s owner'
      }
    >
      <p>
        {isAddress
          ? 'The receipt doesn’t name the owner of this address.'
          : 'The content and its signature aren’t public.'}{' '}
        If you have the opening, your browser checks that it matches this receipt. The opening stays in this tab. It’s
        never sent or stored.
      </p>
      <p>
        <label htmlFor="opening-file">Opening file</label>{' '}
        <input
          id="opening-file"
          type="file"
          accept=".json,application/json"
          onClick={({ currentTarget }) => {
            // Lets the visitor choose the same file again.
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
        hint={isAddress ? 'JSON, with salt and identity' : 'JSON, with one half or both'}
        action="Check the opening"
        onSubmit={submit}
      />
    </Fold>
  )
}

/** Whether an opening could show the content of this receipt, or the owner of its address. */
export function canOpen(receipt: object | undefined): boolean {
  const kind = readKind(receipt)
  return kind === 'off-chain' || kind === 'address'
}

export function isAddressReceipt(receipt: object | undefined): boolean {
  return readKind(receipt) === 'address'
}

function readKind(receipt: object | undefined): unknown {
  return receipt !== undefined && 'kind' in receipt ? receipt.kind : undefined
}
