import { useEffect, useRef, useState } from 'react'

const SHOWN_MS = 2500

/** Copies a text and says so, on the button and to a screen reader. */
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
      // Forbidden, or the page is not served securely.
      setOutcome('failed')
    }
    timer.current = setTimeout(() => setOutcome(null), SHOWN_MS)
  }

  const words = { copied: 'Copied', failed: 'Select it by hand' }
  return (
    <>
      <button type="button" className="button button-small" onClick={copy}>
        {outcome === null ? 'Copy' : words[outcome]}
        <span className="visually-hidden"> {outcome === null ? what : ''}</span>
      </button>
      <span className="visually-hidden" role="status">
        {outcome === null ? '' : outcome === 'copied' ? `Copied ${what}` : `The browser did not let us copy ${what}`}
      </span>
    </>
  )
}
