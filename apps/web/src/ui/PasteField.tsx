import { useState } from 'react'
import { Button } from './Button.tsx'
import { Field } from './Field.tsx'

export type PasteFieldProps = {
  id: string
  label: string
  hint?: string
  /** On the button. */
  action: string
  isQuiet?: boolean
  isDisabled?: boolean
  /** Answers what is wrong with the text. A text with nothing wrong is taken out of the field. */
  take: (text: string) => string | undefined
}

/** A field for a text that comes from elsewhere, and the button that takes it. */
export function PasteField({ id, label, hint, action, isQuiet = false, isDisabled = false, take }: PasteFieldProps) {
  const [text, setText] = useState('')
  const [fault, setFault] = useState<string | undefined>(undefined)

  function submit() {
    const found = take(text)
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
