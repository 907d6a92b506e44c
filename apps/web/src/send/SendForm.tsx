import { type FormEvent, type ReactNode, type RefObject, useState } from 'react'
import type { Token } from '../config.ts'
import { Field } from '../ui/Field.tsx'
import { GasField, type GasFieldProps } from './GasField.tsx'
import type { FieldErrors, SendFields } from './parseFields.ts'

export type SendFormProps = Omit<GasFieldProps, 'error' | 'input'> & {
  errors: FieldErrors
  /** What can be sent beside ether. */
  tokens: readonly Token[]
  form: RefObject<HTMLFormElement | null>
  onMax: () => void
  onReview: () => void
  /** Further fields, before the button. */
  children?: ReactNode
}

/** Where a payment is written. Nothing here signs. */
export function SendForm({
  fields,
  errors,
  isChecking,
  form,
  tokens,
  onChange,
  onMax,
  onReview,
  children,
  ...rest
}: SendFormProps) {
  const [isCall, setIsCall] = useState(fields.data !== '' || fields.gas !== '')
  const token = tokens.find(({ address }) => address === fields.asset)
  // What a call needs depends on the amount, so there is no largest one to be known before.
  const hasData = token === undefined && fields.data.trim() !== ''
  function submit(event: FormEvent) {
    event.preventDefault()
    if (!isChecking) onReview()
  }
  const text = (name: keyof SendFields) => ({
    value: fields[name],
    onChange: (event: { target: { value: string } }) => onChange({ [name]: event.target.value }),
    autoComplete: 'off',
    spellCheck: false,
    // What is being asked about must be what stands there.
    readOnly: isChecking,
  })
  return (
    <form ref={form} className="send-form" onSubmit={submit} noValidate>
      {tokens.length === 0 ? null : (
        <Field id="send-asset" label="Asset" error={errors.asset}>
          {(control) => (
            <select
              {...control}
              value={fields.asset}
              onChange={({ target }) => onChange({ asset: target.value, amount: '' })}
              disabled={isChecking}
            >
              <option value="">ETH</option>
              {tokens.map(({ address, symbol, name }) => (
                <option key={address} value={address}>
                  {symbol} ({name})
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      <Field id="send-to" label="To" error={errors.to}>
        {(control) => <input {...control} {...text('to')} className="mono" placeholder="0x…" autoCapitalize="off" />}
      </Field>
      <div className="field-row">
        <Field id="send-amount" label={`Amount in ${token?.symbol ?? 'ETH'}`} error={errors.amount}>
          {(control) => <input {...control} {...text('amount')} inputMode="decimal" placeholder="0.05" />}
        </Field>
        {hasData ? null : (
          <button type="button" className="button button-quiet" onClick={onMax} aria-disabled={isChecking}>
            Max
          </button>
        )}
      </div>
      {token === undefined ? (
        <details className="call-fields" open={isCall} onToggle={(event) => setIsCall(event.currentTarget.open)}>
          <summary>Contract call</summary>
          <Field
            id="send-data"
            label="Data"
            hint="The encoded call, as hex. Leave it empty for a payment."
            error={errors.data}
          >
            {(control) => <textarea {...control} {...text('data')} className="mono" rows={3} placeholder="0x" />}
          </Field>
          <GasField {...rest} {...{ fields, isChecking, onChange }} error={errors.gas} input={text('gas')} />
        </details>
      ) : null}
      {children}
      <button type="submit" className="button" aria-disabled={isChecking}>
        {isChecking ? 'Asking the chain …' : 'Review'}
      </button>
    </form>
  )
}
