/**
 * Whether a value is an object as a literal or `JSON.parse` makes it, with data members only. Anything else (a class, a
 * getter, an inherited `toJSON`) could show one value to a check and another to the encoder.
 */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  if (![Object.prototype, null].includes(Object.getPrototypeOf(value))) return false
  return Reflect.ownKeys(value).every((key) => {
    const member = Object.getOwnPropertyDescriptor(value, key)
    return typeof key === 'string' && member?.enumerable === true && 'value' in member
  })
}

/** A plain object with these members, all of them, and no other. */
export function hasExactMembers<Name extends string>(
  value: unknown,
  names: readonly Name[],
): value is Record<Name, unknown> {
  if (!isPlainObject(value) || Object.keys(value).length !== names.length) return false
  return names.every((name) => Object.hasOwn(value, name))
}
