/**
 * A receipt, a gateway or a node may put anything into a text. Invisible and right-to-left characters could make a hash
 * read as another.
 */
const MISLEADING = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu

export function toPrintable(text: string): string {
  return text.replace(MISLEADING, '\u{fffd}')
}
