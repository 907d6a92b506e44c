import { useState } from 'react'
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

  return (
    <div className="send-form">
      <Field id={id} label={label} hint={hint} error={fault}>
        {(control) => (
          <textarea
            {...control}
            className="mono"
            rows={4}
            autoComplete="off"
            spellCheck={false}
            value={text}
            onChange={({ target }) => {
              setText(target.value)
              setFault(undefined)
            }}
          />
        )}
      </Field>
      <p className="actions">
        <button
          type="button"
          className={isQuiet ? 'button button-quiet' : 'button'}
          onClick={submit}
          disabled={isDisabled}
        >
          {action}
        </button>
      </p>
    </div>
  )
}
