import type { Hex } from '@countersign/sdk'
import { type FormEvent, type RefObject, useState } from 'react'
import type { PublicClient } from 'viem'
import { Field } from '../ui/Field.tsx'
import { type FieldErrors, parseFields, type SendFields } from './parseFields.ts'
import { estimateGas } from './prepareDraft.ts'

export type SendFormProps = {
  fields: SendFields
  errors: FieldErrors
  isChecking: boolean
  chain: () => Pick<PublicClient, 'estimateGas'>
  from: Hex
  form: RefObject<HTMLFormElement | null>
  onChange: (change: Partial<SendFields>) => void
  onErrors: (errors: FieldErrors) => void
  onFailure: (error: unknown) => void
  onReview: () => void
}

/** Where a payment is written. Nothing here signs. */
export function SendForm({ fields, errors, isChecking, form, onChange, onReview, ...rest }: SendFormProps) {
  const [isCall, setIsCall] = useState(fields.data !== '' || fields.gas !== '')
  function submit(event: FormEvent) {
    event.preventDefault()
    if (!isChecking) onReview()
  }
  const text = (name: keyof SendFields) => ({
    value: fields[name],
    onChange: (event: { target: { value: string } }) => onChange({ [name]: event.target.value }),
    autoComplete: 'off',
    spellCheck: false,
  })
  return (
    <form ref={form} className="send-form" onSubmit={submit} noValidate>
      <Field id="send-to" label="To" error={errors.to}>
        {(control) => <input {...control} {...text('to')} className="mono" placeholder="0x…" autoCapitalize="off" />}
      </Field>
      <Field id="send-amount" label="Amount in ether" error={errors.amount}>
        {(control) => <input {...control} {...text('amount')} inputMode="decimal" placeholder="0.05" />}
      </Field>
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
        <GasField {...rest} fields={fields} error={errors.gas} onChange={onChange} input={text('gas')} />
      </details>
      <button type="submit" className="button" aria-disabled={isChecking}>
        {isChecking ? 'Asking the chain …' : 'Review'}
      </button>
    </form>
  )
}

type GasFieldProps = Pick<SendFormProps, 'fields' | 'chain' | 'from' | 'onChange' | 'onErrors' | 'onFailure'> & {
  error: string | undefined
  input: object
}

function GasField({ fields, chain, from, error, input, onChange, onErrors, onFailure }: GasFieldProps) {
  const [said, setSaid] = useState('')

  async function estimate() {
    const parsed = parseFields({ ...fields, gas: '' })
    if ('errors' in parsed) return onErrors(parsed.errors)
    setSaid('Asking the chain …')
    try {
      const estimated = await estimateGas(chain(), { from, payment: parsed.payment })
      setSaid('errors' in estimated ? '' : `Estimated, with a fifth to spare: ${estimated.gas}.`)
      if ('errors' in estimated) onErrors(estimated.errors)
      else onChange({ gas: String(estimated.gas) })
    } catch (failure) {
      setSaid('')
      onFailure(failure)
    }
  }

  return (
    <>
      <div className="field-row">
        <Field id="send-gas" label="Gas limit" hint="Left empty, it is estimated when you review." error={error}>
          {(control) => <input {...control} {...input} inputMode="numeric" placeholder="estimated" />}
        </Field>
        <button type="button" className="button button-quiet" onClick={estimate}>
          Estimate gas
        </button>
      </div>
      <p className="field-hint" role="status">
        {said}
      </p>
    </>
  )
}
