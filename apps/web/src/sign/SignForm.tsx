import type { FormEvent, RefObject } from 'react'
import { Button } from '../ui/Button.tsx'
import { Field } from '../ui/Field.tsx'
import type { SignFields, SignKind } from './parseSignFields.ts'

export type SignFormProps = {
  fields: SignFields
  error: string | null
  form: RefObject<HTMLFormElement | null>
  onChange: (change: Partial<SignFields>) => void
  onReview: () => void
}

const KINDS: Record<SignKind, { name: string; label: string; hint: string; placeholder: string }> = {
  text: {
    name: 'Text',
    label: 'Message',
    hint: 'Signed exactly as written, in UTF-8 (EIP-191).',
    placeholder: 'I agree.',
  },
  hex: {
    name: 'Bytes',
    label: 'Hex bytes',
    hint: 'Signed as a message with these bytes (EIP-191).',
    placeholder: '0x…',
  },
  'typed-data': {
    name: 'Typed data',
    label: 'Typed data as JSON',
    hint: 'An eth_signTypedData_v4 request (EIP-712) with domain, types, primaryType and message.',
    placeholder: '{ "domain": …, "types": …, "primaryType": …, "message": … }',
  },
}

/** The form for messages. Doesn't sign. */
export function SignForm({ fields, error, form, onChange, onReview }: SignFormProps) {
  const { label, hint, placeholder } = KINDS[fields.kind]
  function submit(event: FormEvent) {
    event.preventDefault()
    onReview()
  }
  return (
    <form ref={form} className="stack" onSubmit={submit} noValidate>
      <fieldset className="sign-kinds">
        <legend className="visually-hidden">Kind</legend>
        {(Object.keys(KINDS) as SignKind[]).map((kind) => (
          <label key={kind}>
            <input type="radio" name="sign-kind" checked={fields.kind === kind} onChange={() => onChange({ kind })} />
            {KINDS[kind].name}
          </label>
        ))}
      </fieldset>
      <Field
        id="sign-text"
        label={label}
        hint={hint}
        placeholder={placeholder}
        error={error ?? undefined}
        value={fields.text}
        isMono={fields.kind !== 'text'}
        rows={fields.kind === 'typed-data' ? 12 : 6}
        onChange={(text) => onChange({ text })}
      />
      <Button type="submit">Review</Button>
    </form>
  )
}
