/**
 * A receipt, a gateway or a node may put anything into a text. Control characters could move the cursor and paint a verdict
 * of their own; invisible and right-to-left ones could make a hash read as another. Some invisible ones are letters or marks by
 * their category (fillers, variation selectors): they have the property DI (Default_Ignorable_Code_Point).
 */
const MISLEADING = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{DI}]/gu

export function toPrintable(text: string): string {
  return text.replace(MISLEADING, '\u{fffd}')
}

/** The same for a text of several lines, which it keeps. */
export function toPrintableLines(text: string): string {
  return text.split('\n').map(toPrintable).join('\n')
}

/** The same for JSON, where the text itself must survive: escaped, not replaced. */
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
