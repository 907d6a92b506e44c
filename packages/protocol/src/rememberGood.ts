/** Asks `judge` about a text once if it is good, for as long as it is among the `most` that are remembered. Bad ones are not remembered. */
export function rememberGood(judge: (text: string) => boolean, most: number): (text: string) => boolean {
  const good = new Set<string>()
  return (text) => {
    if (good.has(text)) return true
    if (!judge(text)) return false
    if (good.size >= most) good.clear()
    good.add(text)
    return true
  }
}
