import { useEffect, useState } from 'react'

/** Saves bytes that are at hand, to the byte. */
export function DownloadLink({
  bytes,
  name,
  onDownload,
  children,
}: {
  bytes: Uint8Array<ArrayBuffer>
  name: string
  onDownload?: () => void
  children: string
}) {
  const [href, setHref] = useState<string | undefined>(undefined)
  useEffect(() => {
    const url = URL.createObjectURL(new Blob([bytes], { type: 'application/json' }))
    setHref(url)
    return () => URL.revokeObjectURL(url)
  }, [bytes])
  return (
    <a className="button button-quiet" href={href} download={name} onClick={onDownload}>
      {children}
    </a>
  )
}
