import { hash } from 'node:crypto'

/** White letters on them can be read: at least 4.5 to 1. */
const COLOURS = ['#2f5fd0', '#a8324a', '#1f7a4d', '#7a4bb8', '#9a5b00', '#0f7282', '#5a6472']

/** A key, for names without a letter. */
const KEY =
  '<path d="M14.5 5a4.5 4.5 0 0 0-4.2 6.1L5 16.4V19h3v-2h2v-2h2l.9-1.3A4.5 4.5 0 1 0 14.5 5zm1 3.2a1.3 1.3 0 1 1 0 2.6 1.3 1.3 0 0 1 0-2.6z" fill="#fff"/>'

/** The first letter of a name on a coloured square: our own drawing, since the marks of providers are theirs. */
export function drawIcon(name: string): string {
  const letter = /[\p{L}\p{N}]/u.exec(name)?.[0]?.toUpperCase()
  // By this byte the best-known differ, of which two begin with a G.
  const colour = COLOURS[hash('sha256', name, 'buffer').readUInt8(3) % COLOURS.length]
  const sign =
    letter === undefined
      ? KEY
      : `<text x="12" y="17" text-anchor="middle" font-family="system-ui,sans-serif" font-size="14" font-weight="700" fill="#fff">${letter}</text>`
  return toIconUrl(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="6" fill="${colour}"/>${sign}</svg>`,
  )
}

/** An SVG document as the source of an image, where no script of it runs and nothing is loaded. */
export function toIconUrl(svg: string): string {
  return `data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}`
}
