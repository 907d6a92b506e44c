import { type ReactNode, useEffect, useRef } from 'react'
import { Button } from './Button.tsx'

export type StepProps = { id: string; title: string; className: string; level?: 2 | 3; children: ReactNode }

/** A part that takes the place of the button that had the focus: its heading gets the focus. */
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
  /** On the button. */
  action: string
  /** On the button instead, while the action runs. */
  doing?: string | undefined
  onConfirm: () => void
  /** Back to the form; undefined where there is none. */
  onChange?: (() => void) | undefined
  /** After the buttons. */
  footer?: ReactNode
}

/** The last look before something that cannot be taken back. */
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
