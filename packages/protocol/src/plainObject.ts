/**
 * Whether a value is a plain object, as from a literal or `JSON.parse`, with data members only. A class, a getter or an inherited `toJSON`
 * could show one value to a check and another to the encoder.
 */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  // Object.prototype is recognized by one of its members: objects from another realm, such as a frame, have a different one.
  if (!Object.hasOwn(Object.getPrototypeOf(value) ?? Object.prototype, 'isPrototypeOf')) return false
  return Reflect.ownKeys(value).every((key) => {
    const member = Object.getOwnPropertyDescriptor(value, key)
    return typeof key === 'string' && member?.enumerable === true && 'value' in member
  })
}

/** A plain object with exactly these members. */
export function hasExactMembers<Name extends string>(
  value: unknown,
  names: readonly Name[],
): value is Record<Name, unknown> {
  if (!isPlainObject(value) || Object.keys(value).length !== names.length) return false
  for (const name of names) if (!Object.hasOwn(value, name)) return false
  return true
}

/** The members of a plain object that has all required ones, perhaps optional ones, and no others. `fail` creates the error to throw. */
export function readMembers<Required extends string, Optional extends string = never>(
  value: unknown,
  names: { required: readonly Required[]; optional?: readonly Optional[] },
  fail: (details: string) => Error,
): Record<Required | Optional, unknown> {
  if (!isPlainObject(value)) throw fail('not an object')
  let known = names.required.length
  for (const name of names.required) if (!Object.hasOwn(value, name)) throw fail(`${name} is missing`)
  for (const name of names.optional ?? []) if (Object.hasOwn(value, name)) known += 1
  // Doesn't repeat the unknown name: an untrusted caller wrote it, and this text may go into a log.
  if (Object.keys(value).length !== known) throw fail('a member is unknown')
  return value as Record<Required | Optional, unknown>
}
