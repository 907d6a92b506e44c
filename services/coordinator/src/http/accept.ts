/** Whether an `Accept` header would rather have a page than JSON. Who does not care gets JSON: that is what programs send. */
export function prefersHtml(accept: string | undefined): boolean {
  const ranges = (accept ?? '').split(',').map(parseRange)
  const json = Math.max(qualityOf(ranges, 'application/problem+json'), qualityOf(ranges, 'application/json'))
  return qualityOf(ranges, 'text/html') > json
}

type Range = { type: string; quality: number }

/** RFC 9110 §12.5.1. A weight that cannot be read is none. */
function parseRange(text: string): Range {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const weight = parameters.find((parameter) => /^q\s*=/.test(parameter))?.replace(/^q\s*=\s*/, '') ?? '1'
  return { type, quality: /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight) ? Number(weight) : 0 }
}

/** The narrowest range that covers a type decides. */
function qualityOf(ranges: readonly Range[], type: string): number {
  for (const covering of [type, type.replace(/\/.*/, '/*'), '*/*']) {
    const found = ranges.filter((range) => range.type === covering)
    if (found.length > 0) return Math.max(...found.map(({ quality }) => quality))
  }
  return 0
}
