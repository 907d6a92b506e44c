import { type MediaRange, parseMediaRanges } from '../parseMediaRanges.ts'

/** Whether an `Accept` header prefers HTML to JSON. On a tie the answer is no, because programs usually send no preference. */
export function prefersHtml(accept: string | undefined): boolean {
  if (accept === undefined || accept === '*/*') return false
  const ranges = parseMediaRanges(accept)
  const json = Math.max(qualityOf(ranges, 'application/problem+json'), qualityOf(ranges, 'application/json'))
  return qualityOf(ranges, 'text/html') > json
}

/** The most specific range that matches a type decides. */
function qualityOf(ranges: readonly MediaRange[], type: string): number {
  for (const covering of [type, type.replace(/\/.*/, '/*'), '*/*']) {
    const found = ranges.filter((range) => range.type === covering)
    if (found.length > 0) return Math.max(...found.map(({ quality }) => quality))
  }
  return 0
}
