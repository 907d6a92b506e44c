import type { Hex } from '@countersign/sdk'
import { type FormEvent, type ReactNode, type RefObject, useEffect, useRef, useState } from 'react'
import type { PublicClient } from 'viem'
import { type Token, useCoin } from '../config.ts'
import { Button } from '../ui/Button.tsx'
import { Field, type FieldProps } from '../ui/Field.tsx'
import { type FieldErrors, parseFields, type SendFields } from './parseFields.ts'
import { estimateGas } from './prepareDraft.ts'

export type SendFormProps = Omit<GasFieldProps, 'text'> & {
  errors: FieldErrors
  /** The tokens that can be sent. */
  tokens: readonly Token[]
  form: RefObject<HTMLFormElement | null>
  onMax: () => void
  onReview: () => void
  /** Additional fields before the button. */
  children?: ReactNode
}

/** The payment form. Doesn't sign. */
export function SendForm(props: SendFormProps) {
  const { fields, errors, isChecking, form, tokens, onChange, onMax, onReview, children, ...rest } = props
  const coin = useCoin()
  const [isCall, setIsCall] = useState(fields.data !== '' || fields.gas !== '')
  const token = tokens.find(({ address }) => address === fields.asset)
  // A call's gas depends on the amount, so its maximum isn't known in advance.
  const hasData = token === undefined && fields.data.trim() !== ''
  function submit(event: FormEvent) {
    event.preventDefault()
    if (!isChecking) onReview()
  }
  const text = (name: keyof SendFields) => ({
    value: fields[name],
    error: errors[name],
    isLocked: isChecking,
    onChange: (value: string) => onChange({ [name]: value }),
  })
  return (
    <form ref={form} className="stack" onSubmit={submit} noValidate>
      {tokens.length === 0 ? null : (
        <Field id="send-asset" label="Asset" {...text('asset')} onChange={(asset) => onChange({ asset, amount: '' })}>
          <option value="">{coin}</option>
          {tokens.map(({ address, symbol, name }) => (
            <option key={address} value={address}>
              {symbol} ({name})
            </option>
          ))}
        </Field>
      )}
      <Field id="send-to" label="To" {...text('to')} placeholder="0x…" isMono />
      <div className="field-row">
        <Field
          id="send-amount"
          label={`Amount in ${token?.symbol ?? coin}`}
          {...text('amount')}
          inputMode="decimal"
          placeholder="0.05"
        />
        {hasData ? null : (
          <Button look="quiet" onClick={onMax} isBusy={isChecking}>
            Max
          </Button>
        )}
      </div>
      {token === undefined ? (
        <details className="call-fields" open={isCall} onToggle={(event) => setIsCall(event.currentTarget.open)}>
          <summary>Contract call</summary>
          <Field
            id="send-data"
            label="Data"
            hint="Encoded call in hex. Leave empty for a payment."
            {...text('data')}
            placeholder="0x"
            rows={3}
            isMono
          />
          <GasField {...rest} fields={fields} isChecking={isChecking} onChange={onChange} text={text('gas')} />
        </details>
      ) : null}
      {children}
      <Button type="submit" isBusy={isChecking}>
        {isChecking ? 'Checking…' : 'Review'}
      </Button>
    </form>
  )
}

type GasFieldProps = {
  fields: SendFields
  isChecking: boolean
  chain: () => Pick<PublicClient, 'estimateGas'>
  from: Hex
  onChange: (change: Partial<SendFields>) => void
  onErrors: (errors: FieldErrors) => void
  onFailure: (error: unknown) => void
  text: Pick<FieldProps, 'value' | 'onChange' | 'error' | 'isLocked'>
}

/** The gas limit of a call, with a button to estimate it. */
function GasField({ fields, isChecking, chain, from, text, onChange, onErrors, onFailure }: GasFieldProps) {
  const coin = useCoin()
  const [message, setMessage] = useState('')
  const { to, amount, data } = fields
  /** The call that was estimated. Undefined if the user entered the gas. */
  const estimatedFor = useRef<string | undefined>(undefined)
  const call = JSON.stringify([to, amount, data])
  const current = useRef(call)
  current.current = call
  // Ignores an estimate that arrives after the form is gone.
  useEffect(() => {
    return () => {
      current.current = ''
    }
  }, [])

  // biome-ignore lint/correctness/useExhaustiveDependencies: an estimate is of one call; with another it would be signed unseen
  useEffect(() => {
    if (estimatedFor.current === undefined || estimatedFor.current === call) return
    estimatedFor.current = undefined
    setMessage('')
    onChange({ gas: '' })
  }, [call])

  async function estimate() {
    if (isChecking) return
    const parsed = parseFields({ ...fields, gas: '' }, { tokens: [], coin })
    if ('errors' in parsed) return onErrors(parsed.errors)
    setMessage('Estimating…')
    try {
      const estimated = await estimateGas(chain(), { from, payment: parsed.payment })
      if (current.current !== call) return setMessage('')
      setMessage('errors' in estimated ? '' : `Estimate plus 20%: ${estimated.gas}.`)
      if ('errors' in estimated) onErrors(estimated.errors)
      else {
        estimatedFor.current = call
        onChange({ gas: String(estimated.gas) })
      }
    } catch (failure) {
      setMessage('')
      if (current.current === call) onFailure(failure)
    }
  }

  return (
    <>
      <div className="field-row">
        <Field
          id="send-gas"
          label="Gas limit"
          hint="Leave empty to estimate it when you review."
          {...text}
          inputMode="numeric"
          placeholder="estimated"
        />
        <Button look="quiet" onClick={estimate} isBusy={isChecking}>
          Estimate gas
        </Button>
      </div>
      <p className="field-hint" role="status">
        {message}
      </p>
    </>
  )
}
