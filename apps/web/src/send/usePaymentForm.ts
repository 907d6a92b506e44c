import { type Hex, useService } from '@countersign/sdk'
import { type RefObject, useEffect, useRef, useState } from 'react'
import { useTokens } from '../config.ts'
import { type FieldErrors, parseFields, type SendFields } from './parseFields.ts'
import { type Draft, prepareDraft, prepareMax } from './prepareDraft.ts'
import type { SendFormProps } from './SendForm.tsx'
import { tellAmount } from './tellDraft.ts'

export type PaymentFormParameters = {
  from: Hex
  /** Whether the chain is being asked. */
  isChecking: () => boolean
  /** The chain is asked, or was. */
  onChecking: (isChecking: boolean) => void
  /** Null before the chain is asked again. */
  onFailure: (error: unknown) => void
}

export type PaymentForm = {
  form: RefObject<HTMLFormElement | null>
  /** All that `SendForm` needs, but what to do with a draft. */
  props: Omit<SendFormProps, 'isChecking' | 'onReview'>
  /** Reads the form and asks the chain. The draft, if nothing is wrong with it; the form stays `checking` then. */
  review(): Promise<Draft | undefined>
  showErrors(errors: FieldErrors): void
  clear(): void
  /** To the first field, which is there after the next paint. */
  focus(): void
}

const EMPTY: SendFields = { asset: '', to: '', amount: '', data: '', gas: '' }

/** What is written into the form of a payment, what is wrong with it, and the draft that comes of it. */
export function usePaymentForm({ from, isChecking, onChecking, onFailure }: PaymentFormParameters): PaymentForm {
  const { client } = useService()
  const tokens = useTokens()
  const [fields, setFields] = useState(EMPTY)
  const [errors, setErrors] = useState<FieldErrors>({})
  /** The amount is whatever can be sent at most, at the fees of the time. */
  const [isMax, setIsMax] = useState(false)
  const form = useRef<HTMLFormElement>(null)
  const wantsFocus = useRef(false)

  // biome-ignore lint/correctness/useExhaustiveDependencies: once the messages are on the page, to the first field that has one
  useEffect(() => {
    if (!wantsFocus.current) return
    wantsFocus.current = false
    const field = form.current?.querySelector<HTMLElement>('[aria-invalid]')
    field?.closest('details')?.setAttribute('open', '')
    field?.focus()
  }, [errors])

  function showErrors(found: FieldErrors) {
    wantsFocus.current = true
    setErrors(found)
  }

  async function check(written: SendFields, prepare: typeof prepareDraft): Promise<Draft | undefined> {
    onFailure(null)
    const parsed = parseFields(written, tokens)
    if ('errors' in parsed) return void showErrors(parsed.errors)
    setErrors({})
    onChecking(true)
    try {
      const prepared = await prepare(client.publicClient, { from, payment: parsed.payment })
      if ('draft' in prepared) return prepared.draft
      showErrors(prepared.errors)
    } catch (error) {
      onFailure(error)
    }
    onChecking(false)
  }

  async function review() {
    const draft = await check(fields, isMax ? prepareMax : prepareDraft)
    if (draft?.isMax) setFields((before) => ({ ...before, amount: toAmountText(draft) }))
    return draft
  }

  /** Before there is a recipient, the wallet itself is as good. */
  async function fillMax() {
    if (isChecking()) return
    const hasRecipient = !('errors' in parseFields({ ...fields, amount: '1' }, tokens))
    const draft = await check({ ...fields, to: hasRecipient ? fields.to : from, amount: '1' }, prepareMax)
    if (draft === undefined) return
    setFields((before) => ({ ...before, amount: toAmountText(draft) }))
    setIsMax(true)
    onChecking(false)
  }

  return {
    form,
    props: {
      ...{ fields, errors, form, from, tokens },
      chain: () => client.publicClient,
      onChange(change) {
        setFields((before) => ({ ...before, ...change }))
        if ('amount' in change || 'data' in change) setIsMax(false)
        setErrors((before) => without(before, Object.keys(change)))
      },
      onErrors: showErrors,
      onFailure,
      onMax: fillMax,
    },
    review,
    showErrors,
    clear() {
      setFields(EMPTY)
      setIsMax(false)
    },
    focus() {
      requestAnimationFrame(() => form.current?.querySelector('input')?.focus())
    },
  }
}

function toAmountText(draft: Draft): string {
  return tellAmount(draft).split(' ')[0] ?? ''
}

/** A message goes when its field is changed; the others stay. */
function without(errors: FieldErrors, names: string[]): FieldErrors {
  return Object.fromEntries(Object.entries(errors).filter(([name]) => !names.includes(name)))
}
