import type { ServiceError } from '@countersign/sdk'
import type { ReactNode } from 'react'
import { type Explanation, explainError } from '../words/explainError.ts'

/** What colours and shapes say beside the words. */
export type Tone = 'good' | 'warning' | 'bad'

export type NoticeProps = {
  tone: Tone
  title: string
  children?: ReactNode
  /** Read out at once; for what was not there a moment ago. */
  isAlert?: boolean
}

/** A few sentences that stand out. */
export function Notice({ tone, title, children, isAlert }: NoticeProps) {
  return (
    <div className={`notice tone-${tone}`} {...(isAlert ? { role: 'alert' } : {})}>
      <p className="notice-title">{title}</p>
      {children}
    </div>
  )
}

export type ErrorNoticeProps = {
  /** Null: nothing is shown. */
  error: ServiceError | null
  /** In place of the general words. */
  explanation?: Explanation | undefined
  /** Beside the words: a way on. */
  children?: ReactNode
}

/** What went wrong, what to do, and the code, for support. */
export function ErrorNotice({ error, explanation, children }: ErrorNoticeProps) {
  if (error === null) return null
  const { title, advice } = explanation ?? explainError(error)
  return (
    <Notice tone="bad" title={title} isAlert>
      <p>{advice}</p>
      <details className="fine-print">
        <summary>Technical details</summary>
        <p className="mono">
          {error.code}
          {error.details ? `: ${error.details}` : null}
        </p>
      </details>
      {children ? <div className="actions">{children}</div> : null}
    </Notice>
  )
}
