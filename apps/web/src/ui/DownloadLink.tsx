import { useEffect, useState } from 'react'

export function DownloadLink({
  bytes,
  name,
  onDownload,
  type = 'application/json',
  children,
}: {
  bytes: Uint8Array<ArrayBuffer>
  name: string
  onDownload?: () => void
  type?: string
  children: string
}) {
  const [href, setHref] = useState<string | undefined>(undefined)
  useEffect(() => {
    const url = URL.createObjectURL(new Blob([bytes], { type }))
    setHref(url)
    return () => URL.revokeObjectURL(url)
  }, [bytes, type])
  return (
    <a className="button button-quiet" href={href} download={name} onClick={onDownload}>
      {children}
    </a>
  )
}
