import type { ReactNode } from 'react'

export type FieldProps = {
  id: string
  label: string
  hint?: string | undefined
  error?: string | undefined
  value: string
  onChange: (value: string) => void
  placeholder?: string | undefined
  inputMode?: 'text' | 'decimal' | 'numeric' | 'url' | undefined
  maxLength?: number | undefined
  /** The number of lines. */
  rows?: number | undefined
  /** For values that are compared digit by digit. */
  isMono?: boolean
  /** Read-only while the input is being checked. */
  isLocked?: boolean
  /** The options of a select. */
  children?: ReactNode
}

/** A labelled control with its hint and error. */
export function Field(props: FieldProps) {
  const { id, label, hint, error, onChange, rows, isMono = false, isLocked = false, children, ...rest } = props
  const descriptions = [error === undefined ? '' : `${id}-error`, hint === undefined ? '' : `${id}-hint`]
  const control = {
    ...rest,
    id,
    className: isMono ? 'mono' : undefined,
    'aria-describedby': descriptions.filter(Boolean).join(' ') || undefined,
    'aria-invalid': error === undefined ? undefined : true,
    autoComplete: 'off',
    autoCapitalize: isMono ? 'off' : undefined,
    spellCheck: false,
    onChange: (event: { target: { value: string } }) => onChange(event.target.value),
  }
  return (
    <div className={error === undefined ? 'field' : 'field field-invalid'}>
      <label htmlFor={id}>{label}</label>
      {children !== undefined ? (
        <select {...control} disabled={isLocked}>
          {children}
        </select>
      ) : rows !== undefined ? (
        <textarea {...control} rows={rows} readOnly={isLocked} />
      ) : (
        <input {...control} readOnly={isLocked} />
      )}
      {error === undefined ? null : (
        <p id={`${id}-error`} className="field-error">
          {error}
        </p>
      )}
      {hint === undefined ? null : (
        <p id={`${id}-hint`} className="field-hint">
          {hint}
        </p>
      )}
    </div>
  )
}
