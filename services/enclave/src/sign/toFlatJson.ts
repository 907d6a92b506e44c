/**
 * The canonical JSON of a flat object of ASCII strings and safe integers. Equal to `toCanonicalJson` but faster, because every signature of
 * version 2 needs two. Fastest if the members are in order.
 */
export function toFlatJson(value: object): string {
  const names = Object.keys(value)
  const isOrdered = names.every((name, index) => index === 0 || (names[index - 1] as string) < name)
  return isOrdered ? JSON.stringify(value) : JSON.stringify(value, names.sort())
}
