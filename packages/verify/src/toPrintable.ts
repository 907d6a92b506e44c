/**
 * Texts from receipts, gateways and nodes are attacker-controlled. Control characters could print a false verdict on a terminal. Invisible and
 * right-to-left characters could disguise a hash. DI (Default_Ignorable_Code_Point) includes invisible letters and marks.
 */
const MISLEADING = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{DI}]/gu

export function toPrintable(text: string): string {
  return text.replace(MISLEADING, '\u{fffd}')
}

/** Keeps line breaks. */
export function toPrintableLines(text: string): string {
  return text.split('\n').map(toPrintable).join('\n')
}

/** Formats JSON and escapes misleading characters instead of replacing them. */
export function toPrintableJson(value: unknown): string {
  return JSON.stringify(value, undefined, 2).replace(MISLEADING, (character) =>
    character === '\n' ? character : escapeUnits(character),
  )
}

function escapeUnits(character: string): string {
  return Array.from({ length: character.length }, (_, index) => {
    return `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`
  }).join('')
}
