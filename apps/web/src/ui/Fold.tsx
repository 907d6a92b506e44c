import type { ReactNode } from 'react'

/** A part of the page that opens, with a title and a short note. */
export function Fold(props: { title: string; note?: string | undefined; isOpen?: boolean; children: ReactNode }) {
  const { title, note, isOpen = false, children } = props
  return (
    <details className="fold" open={isOpen}>
      <summary>
        <h2>{title}</h2>
        {note === undefined ? null : <span className="fold-note">{note}</span>}
      </summary>
      <div className="fold-body stack">{children}</div>
    </details>
  )
}
