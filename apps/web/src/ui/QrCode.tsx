import { useMemo } from 'react'
import { encode } from 'uqr'

/** Readers need a margin of four modules. */
const QUIET = 4

/** A QR code as one SVG path. Always dark on light, because many readers can't read inverted codes. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const { size, path } = useMemo(() => toPath(text), [text])
  return (
    <svg className="qr-code" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shapeRendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  )
}

function toPath(text: string) {
  const { data, size } = encode(text, { ecc: 'M', border: QUIET })
  const cells = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')))
  return { size, path: cells.join('') }
}
