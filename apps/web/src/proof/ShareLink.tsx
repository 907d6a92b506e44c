import { useState } from 'react'
import { CopyButton } from '../ui/CopyButton.tsx'

/** Hands on the address of a proof: through what the device shares with, and where there is none, by the clipboard. */
export function ShareLink({ url }: { url: string }) {
  const [canShare, setCanShare] = useState(typeof navigator.share === 'function')

  async function share() {
    try {
      await navigator.share({ title: 'Proof of a signature', url })
    } catch (error) {
      // Whoever closes the sheet has changed their mind; all else is a device that cannot.
      if (!(error instanceof DOMException && error.name === 'AbortError')) setCanShare(false)
    }
  }

  return (
    <p className="share">
      <a href={url}>Link to this proof</a>
      {canShare ? (
        <button type="button" className="button button-small" onClick={share}>
          Share
          <span className="visually-hidden"> the link to this proof</span>
        </button>
      ) : (
        <CopyButton text={url} what="the link to this proof" />
      )}
    </p>
  )
}
