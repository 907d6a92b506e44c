import type { ShownContent } from '@countersign/verify'
import { useEffect, useRef } from 'react'
import { ShownWords } from './ShownWords.tsx'

export type SignConfirmProps = {
  shown: ShownContent
  /** The address that signs. */
  wallet: string
  onConfirm: () => void
  onChange: () => void
}

/** The last look before the signature. */
export function SignConfirm({ shown, wallet, onConfirm, onChange }: SignConfirmProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  return (
    <section className="send-confirm" aria-labelledby="confirm-heading">
      <h3 id="confirm-heading" ref={heading} tabIndex={-1}>
        Is this right?
      </h3>
      <ShownWords {...{ shown, wallet }} />
      <p className="fine-print">
        Whoever gets the signature can use it. What you sign and its signature are not published; that this wallet
        signed something at this time is public, and cannot be taken back.
      </p>
      <div className="actions">
        <button type="button" className="button" onClick={onConfirm}>
          Sign this
        </button>
        <button type="button" className="button button-quiet" onClick={onChange}>
          Change
        </button>
      </div>
    </section>
  )
}
