import { Field } from '../ui/Field.tsx'

type PastedTextProps = {
  id: string
  label: string
  text: string
  fault: string | undefined
  onChange: (text: string) => void
}

/** A field for a text that another device has shown. */
export function PastedText({ id, label, text, fault, onChange }: PastedTextProps) {
  return (
    <Field id={id} label={label} error={fault}>
      {(control) => (
        <textarea
          {...control}
          className="mono"
          rows={3}
          autoComplete="off"
          spellCheck={false}
          value={text}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  )
}
