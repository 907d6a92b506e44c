/** Caches up to `most` valid texts. Invalid ones are checked again each time. */
export function cacheValid(isValid: (text: string) => boolean, most: number): (text: string) => boolean {
  const good = new Set<string>()
  return (text) => {
    if (good.has(text)) return true
    if (!isValid(text)) return false
    if (good.size >= most) good.clear()
    good.add(text)
    return true
  }
}
