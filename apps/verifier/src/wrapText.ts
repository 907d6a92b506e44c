export const COLUMNS = 100

/** Breaks a text at its spaces. A hash that is longer than a line stays whole, so that it can be copied. */
export function wrapText(text: string, { indent, columns = COLUMNS }: { indent: number; columns?: number }): string {
  const margin = ' '.repeat(indent)
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/ +/).filter((part) => part !== '')) {
    if (line !== '' && indent + line.length + 1 + word.length > columns) {
      lines.push(line)
      line = word
    } else {
      line = line === '' ? word : `${line} ${word}`
    }
  }
  return [...lines, line].map((item) => `${margin}${item}`).join('\n')
}
