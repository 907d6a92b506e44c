/** One range of an `Accept` header, in lower case. */
export type MediaRange = { type: string; parameters: ReadonlyMap<string, string>; quality: number }

/** Parses an `Accept` header (RFC 9110 §12.5.1). An invalid weight counts as 0. */
export function parseMediaRanges(accept: string): MediaRange[] {
  return accept.split(',').map((range) => {
    const [type = '', ...rest] = range.split(';').map((part) => part.trim().toLowerCase())
    const parameters = new Map(
      rest.map((part): [string, string] => {
        const [name = '', value = ''] = part.split('=', 2)
        return [name.trim(), value.trim().replace(/^"(.*)"$/, '$1')]
      }),
    )
    const weight = parameters.get('q') ?? '1'
    return { type, parameters, quality: /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight) ? Number(weight) : 0 }
  })
}
