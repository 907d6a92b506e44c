import type { ServiceError } from '@countersign/sdk'
import type { ReactNode } from 'react'
import { Button } from './Button.tsx'
import { ErrorNotice, type ErrorNoticeProps } from './Notice.tsx'

export type ListCardProps = {
  id: string
  title: string
  className?: string
  listClassName: string
  isLoading: boolean
  /** For screen readers, while the skeleton is shown. */
  loading: string | undefined
  error: ServiceError | null
  explain?: ErrorNoticeProps['explanation']
  retry: { label: string; onRetry: () => void }
  /** Shown instead of an empty list. Undefined until the list has loaded. */
  empty: string | undefined
  intro?: ReactNode
  items: readonly ReactNode[]
  /** Shown after the list. */
  children?: ReactNode
}

/** A card with a list from the service. */
export function ListCard(props: ListCardProps) {
  const { id, title, className = 'card', listClassName, isLoading, loading, error, explain, retry } = props
  const { empty, intro, items, children } = props
  return (
    <section className={className} aria-labelledby={id} aria-busy={isLoading}>
      <h2 id={id}>{title}</h2>
      {intro}
      <ErrorNotice error={error} explanation={explain}>
        <Button look="small" onClick={retry.onRetry}>
          {retry.label}
        </Button>
      </ErrorNotice>
      {empty === undefined ? null : <p className="empty">{empty}</p>}
      {items.length === 0 ? null : <ul className={listClassName}>{items}</ul>}
      {loading === undefined ? null : (
        <div role="status">
          <span className="visually-hidden">{loading}</span>
          <div className="skeleton skeleton-row" />
          <div className="skeleton skeleton-row" />
          <div className="skeleton skeleton-row" />
        </div>
      )}
      {children}
    </section>
  )
}
