import { type ReactNode, useEffect, useRef } from 'react'
import { Button } from './Button.tsx'

export type StepProps = { id: string; title: string; className: string; level?: 2 | 3; children: ReactNode }

/** A part that replaces a focused button. Its heading gets the focus. */
export function Step({ id, title, className, level = 3, children }: StepProps) {
  const Heading = `h${level}` as const
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  return (
    <section className={className} aria-labelledby={id}>
      <Heading id={id} ref={heading} tabIndex={-1}>
        {title}
      </Heading>
      {children}
    </section>
  )
}

export type ConfirmStepProps = Omit<StepProps, 'className'> & {
  className?: string
  /** The button's text. */
  action: string
  /** The button's text while the action runs. */
  doing?: string | undefined
  onConfirm: () => void
  /** Returns to the form. Undefined if there is none. */
  onChange?: (() => void) | undefined
  /** Shown after the buttons. */
  footer?: ReactNode
}

/** The review before an action that can't be undone. */
export function ConfirmStep(props: ConfirmStepProps) {
  const { className = 'send-confirm stack', action, doing, onConfirm, onChange, footer, children, ...step } = props
  return (
    <Step {...step} className={className}>
      {children}
      <div className="actions">
        <Button onClick={onConfirm} isBusy={doing !== undefined}>
          {doing ?? action}
        </Button>
        {onChange === undefined ? null : (
          <Button look="quiet" onClick={onChange}>
            Change
          </Button>
        )}
      </div>
      {footer}
    </Step>
  )
}
