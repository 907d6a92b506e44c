import { useState } from 'react'
import { Button } from './Button.tsx'
import { Field } from './Field.tsx'

export type PasteFieldProps = {
  id: string
  label: string
  hint?: string
  /** The button's text. */
  action: string
  isQuiet?: boolean
  isDisabled?: boolean
  /** Returns an error. Without one, the field is cleared. */
  onSubmit: (text: string) => string | undefined
}

/** A field for pasted text, with a button. */
export function PasteField({
  id,
  label,
  hint,
  action,
  isQuiet = false,
  isDisabled = false,
  onSubmit,
}: PasteFieldProps) {
  const [text, setText] = useState('')
  const [fault, setFault] = useState<string | undefined>(undefined)

  function submit() {
    const found = onSubmit(text)
    setFault(found)
    if (found === undefined) setText('')
  }

  function change(next: string) {
    setText(next)
    setFault(undefined)
  }

  return (
    <div className="stack">
      <Field id={id} label={label} hint={hint} error={fault} value={text} onChange={change} rows={4} isMono />
      <p className="actions">
        <Button {...(isQuiet && { look: 'quiet' })} onClick={submit} disabled={isDisabled}>
          {action}
        </Button>
      </p>
    </div>
  )
}
