/**
 * Whether a value is an object as a literal or `JSON.parse` makes it, with data members only. Anything else (a class, a
 * getter, an inherited `toJSON`) could show one value to a check and another to the encoder.
 */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  // By a member that only Object.prototypes own, not by identity: a literal of another realm, such as a frame's, has another one.
  if (!Object.hasOwn(Object.getPrototypeOf(value) ?? Object.prototype, 'isPrototypeOf')) return false
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
  for (const name of names) if (!Object.hasOwn(value, name)) return false
  return true
}

/**
 * The members of a plain object that has all the required ones, perhaps the optional ones, and no other. `fail` makes the
 * caller's own error.
 */
export function readMembers<Required extends string, Optional extends string = never>(
  value: unknown,
  names: { required: readonly Required[]; optional?: readonly Optional[] },
  fail: (details: string) => Error,
): Record<Required | Optional, unknown> {
  if (!isPlainObject(value)) throw fail('not an object')
  let known = names.required.length
  for (const name of names.required) if (!Object.hasOwn(value, name)) throw fail(`${name} is missing`)
  for (const name of names.optional ?? []) if (Object.hasOwn(value, name)) known += 1
  // An unknown name is not repeated: a stranger wrote it, and this text may go into a log.
  if (Object.keys(value).length !== known) throw fail('a member is unknown')
  return value as Record<Required | Optional, unknown>
}
