import { type Hex, type ServiceError, useService } from '@countersign/sdk'
import { type RefObject, useRef, useState } from 'react'
import { useCoin, useTokens } from '../config.ts'
import { useFieldErrors } from '../ui/useFieldErrors.ts'
import { type Session, useSession } from '../wallet/session.ts'
import { toServiceError } from '../words/explainError.ts'
import { type FieldErrors, parseFields, type SendFields } from './parseFields.ts'
import { type Draft, prepareDraft, prepareMax } from './prepareDraft.ts'
import type { SendFormProps } from './SendForm.tsx'
import { SENDING, type SendState, type Step, type Unsettled, useUnsettled } from './sendSession.ts'
import { formatPaymentAmount } from './shownPayment.ts'

export type PaymentOf = Unsettled & {
  session: Session<SendState>
  step: Step
  failure: ServiceError | null
  setStep(step: Step): void
  /** The card's heading. It gets the focus when a focused button is removed. */
  heading: RefObject<HTMLHeadingElement | null>
  /** All props of `SendForm` except the review handler. */
  props: Omit<SendFormProps, 'onReview'>
  /** Parses the form and queries the chain. Returns the draft, with the form still `checking`, or undefined after an error. */
  review(): Promise<Draft | undefined>
  showErrors(errors: FieldErrors): void
  clear(): void
  /** Focuses the first field after the next paint. */
  focus(): void
}

const EMPTY: SendFields = { asset: '', to: '', amount: '', data: '', gas: '' }

/** State of a wallet's or vault's payment form. */
export function usePayment(from: Hex): PaymentOf {
  const { client } = useService()
  const tokens = useTokens()
  const coin = useCoin()
  const [{ step, failure }, session] = useSession(SENDING, from)
  const [fields, setFields] = useState(EMPTY)
  const { errors, form, showErrors, forgetErrors } = useFieldErrors<keyof SendFields>()
  /** The amount is the maximum at current fees. */
  const [isMax, setIsMax] = useState(false)
  const setStep = (next: Step) => session.set({ step: next })
  const isChecking = () => session.get().step.name === 'checking'
  const fail = (error: unknown) => session.set({ failure: toServiceError(error) })

  async function check(written: SendFields, prepare: typeof prepareDraft): Promise<Draft | undefined> {
    session.set({ failure: null })
    const parsed = parseFields(written, { tokens, coin })
    if ('errors' in parsed) return void showErrors(parsed.errors)
    forgetErrors()
    setStep({ name: 'checking' })
    try {
      const prepared = await prepare(client.publicClient, { from, payment: parsed.payment, coin })
      if ('draft' in prepared) return prepared.draft
      showErrors(prepared.errors)
    } catch (error) {
      fail(error)
    }
    setStep({ name: 'form' })
  }

  function show(draft: Draft) {
    setFields((before) => ({ ...before, amount: formatPaymentAmount(draft, coin).split(' ')[0] ?? '' }))
  }

  async function review() {
    const draft = await check(fields, isMax ? prepareMax : prepareDraft)
    if (draft?.isMax) show(draft)
    return draft
  }

  /** Without a recipient, estimates a payment to the wallet itself. */
  async function fillMax() {
    if (isChecking()) return
    const hasRecipient = !('errors' in parseFields({ ...fields, amount: '1' }, { tokens, coin }))
    const draft = await check({ ...fields, to: hasRecipient ? fields.to : from, amount: '1' }, prepareMax)
    if (draft === undefined) return
    show(draft)
    setIsMax(true)
    setStep({ name: 'form' })
  }

  return {
    session,
    step,
    failure,
    setStep,
    ...useUnsettled(from),
    heading: useRef<HTMLHeadingElement>(null),
    props: {
      fields,
      errors,
      form,
      from,
      tokens,
      isChecking: step.name === 'checking',
      chain: () => client.publicClient,
      onChange(change) {
        setFields((before) => ({ ...before, ...change }))
        if ('amount' in change || 'data' in change) setIsMax(false)
        forgetErrors(change)
      },
      onErrors: showErrors,
      onFailure: fail,
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
