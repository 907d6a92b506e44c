import type { Hex } from '@countersign/sdk'
import { useEffect, useRef, useState } from 'react'
import type { PublicClient } from 'viem'
import { Field } from '../ui/Field.tsx'
import { type FieldErrors, parseFields, type SendFields } from './parseFields.ts'
import { estimateGas } from './prepareDraft.ts'

export type GasFieldProps = {
  fields: SendFields
  isChecking: boolean
  chain: () => Pick<PublicClient, 'estimateGas'>
  from: Hex
  onChange: (change: Partial<SendFields>) => void
  onErrors: (errors: FieldErrors) => void
  onFailure: (error: unknown) => void
  error: string | undefined
  input: object
}

/** The gas limit of a call, and a way to have it estimated. */
export function GasField({
  fields,
  isChecking,
  chain,
  from,
  error,
  input,
  onChange,
  onErrors,
  onFailure,
}: GasFieldProps) {
  const [said, setSaid] = useState('')
  const { to, amount, data } = fields
  /** What the gas was estimated for; undefined where it was given by hand. */
  const estimatedFor = useRef<string | undefined>(undefined)
  const call = JSON.stringify([to, amount, data])
  const current = useRef(call)
  current.current = call
  // An answer that comes after the form has gone is of no call that is written now.
  useEffect(() => {
    return () => {
      current.current = ''
    }
  }, [])

  // biome-ignore lint/correctness/useExhaustiveDependencies: an estimate is of one call; with another it would be signed unseen
  useEffect(() => {
    if (estimatedFor.current === undefined || estimatedFor.current === call) return
    estimatedFor.current = undefined
    setSaid('')
    onChange({ gas: '' })
  }, [call])

  async function estimate() {
    if (isChecking) return
    const parsed = parseFields({ ...fields, gas: '' }, [])
    if ('errors' in parsed) return onErrors(parsed.errors)
    setSaid('Asking the chain …')
    try {
      const estimated = await estimateGas(chain(), { from, payment: parsed.payment })
      if (current.current !== call) return setSaid('')
      setSaid('errors' in estimated ? '' : `Estimated, with a fifth to spare: ${estimated.gas}.`)
      if ('errors' in estimated) onErrors(estimated.errors)
      else {
        estimatedFor.current = call
        onChange({ gas: String(estimated.gas) })
      }
    } catch (failure) {
      setSaid('')
      if (current.current === call) onFailure(failure)
    }
  }

  return (
    <>
      <div className="field-row">
        <Field id="send-gas" label="Gas limit" hint="Left empty, it is estimated when you review." error={error}>
          {(control) => <input {...control} {...input} inputMode="numeric" placeholder="estimated" />}
        </Field>
        <button type="button" className="button button-quiet" onClick={estimate} aria-disabled={isChecking}>
          Estimate gas
        </button>
      </div>
      <p className="field-hint" role="status">
        {said}
      </p>
    </>
  )
}
