/**
 * The canonical JSON of a flat object of ASCII strings and safe integers, as `toCanonicalJson` makes it, but faster: every signature
 * of version 2 needs two of them. Fastest where the members are in order already.
 */
export function toFlatJson(value: object): string {
  const names = Object.keys(value)
  const isOrdered = names.every((name, index) => index === 0 || (names[index - 1] as string) < name)
  return isOrdered ? JSON.stringify(value) : JSON.stringify(value, names.sort())
}
