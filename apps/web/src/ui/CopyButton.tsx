import { useEffect, useRef, useState } from 'react'

const SHOWN_MS = 2500

/** Copies a text and confirms it, visibly and to screen readers. */
export function CopyButton({ text, what }: { text: string; what: string }) {
  const [outcome, setOutcome] = useState<'copied' | 'failed' | null>(null)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])

  async function copy() {
    clearTimeout(timer.current)
    try {
      await navigator.clipboard.writeText(text)
      setOutcome('copied')
    } catch {
      // Blocked, or the page isn't served securely.
      setOutcome('failed')
    }
    timer.current = setTimeout(() => setOutcome(null), SHOWN_MS)
  }

  const words = { copied: 'Copied', failed: 'Copy failed' }
  return (
    <>
      <button type="button" className="copy-button" onClick={copy}>
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <path d={outcome === 'copied' ? 'm5 13 4 4L19 7' : 'M9 9h11v11H9zM5 15H4V4h11v1'} />
        </svg>
        {outcome === null ? <span className="visually-hidden">Copy {what}</span> : words[outcome]}
      </button>
      <span className="visually-hidden" role="status">
        {outcome === null
          ? ''
          : outcome === 'copied'
            ? `Copied ${what}`
            : `Couldn’t copy ${what}. Select it and copy it manually.`}
      </span>
    </>
  )
}

export function CopyText({ text, what }: { text: string; what: string }) {
  return (
    <>
      <span className="mono">{text}</span> <CopyButton text={text} what={what} />
    </>
  )
}
