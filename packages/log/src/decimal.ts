/** Parses decimal digits without leading zeros, up to 2^53 - 1. Returns undefined for other text. */
export function parseDecimal(text: string): number | undefined {
  if (!/^(?:0|[1-9][0-9]{0,15})$/.test(text)) return undefined
  const value = Number(text)
  return Number.isSafeInteger(value) ? value : undefined
}
