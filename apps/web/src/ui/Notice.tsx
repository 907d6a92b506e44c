import type { ServiceError } from '@countersign/sdk'
import type { ReactNode } from 'react'
import { type Explanation, explainError } from '../words/explainError.ts'

export type Tone = 'good' | 'warning' | 'bad'

export type NoticeProps = {
  tone: Tone
  title: string
  children?: ReactNode
  /** Screen readers announce it at once. For notices that appear later. */
  isAlert?: boolean
}

export function Notice({ tone, title, children, isAlert }: NoticeProps) {
  return (
    <div className={`notice tone-${tone}`} {...(isAlert ? { role: 'alert' } : {})}>
      <p className="notice-title">{title}</p>
      {children}
    </div>
  )
}

export type ErrorNoticeProps = {
  /** Null shows nothing. */
  error: ServiceError | null
  /** Replaces the general explanation. */
  explanation?: Explanation | undefined
  /** Buttons after the explanation. */
  children?: ReactNode
}

/** An error's title, advice and technical details. */
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
