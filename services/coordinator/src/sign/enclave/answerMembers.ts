import type { SignedStatement } from '@countersign/protocol'

/* What the answers of an enclave are read with. */

/** The enclave's answer is not of the shape that the protocol gives it. */
export class AnswerError extends Error {
  override name = 'AnswerError'
}

/** Whether it is an object, where `JSON.parse` made it: then it is a plain one. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The members of an object that has all the required ones, perhaps the optional ones, and no other. */
export function toMembers<Required extends string, Optional extends string = never>(
  value: unknown,
  required: readonly Required[],
  optional: readonly Optional[] = [],
): Record<Required | Optional, unknown> {
  if (!isObject(value)) throw new AnswerError('not an object')
  for (const name of required) if (!Object.hasOwn(value, name)) throw new AnswerError(`${name} is missing`)
  const isKnown = (name: string) => required.includes(name as Required) || optional.includes(name as Optional)
  for (const name in value) if (!isKnown(name)) throw new AnswerError('a member is unknown')
  return value as Record<Required | Optional, unknown>
}

export function toHex(value: unknown, bytes: number, name: string): string {
  if (typeof value !== 'string' || value.length !== 2 * bytes || !/^[0-9a-f]*$/.test(value)) throw new AnswerError(name)
  return value
}

export function toHexUpTo(value: unknown, bytes: number, name: string): string {
  const isHex = typeof value === 'string' && value.length <= 2 * bytes && /^(?:[0-9a-f]{2})+$/.test(value)
  if (!isHex) throw new AnswerError(name)
  return value
}

export function toNatural(value: unknown, max: number, name: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0 || value > max) throw new AnswerError(name)
  return value
}

/** What it says is judged where it is held against the item and the quote. */
export function toSignedStatement(members: Record<'statement' | 'subject' | 'opening', unknown>): SignedStatement {
  const { statement, subject, opening } = members
  if (!isObject(statement)) throw new AnswerError('statement')
  if (subject !== undefined && !isObject(subject)) throw new AnswerError('subject')
  if (opening !== undefined && !isObject(opening)) throw new AnswerError('opening')
  const signed = subject === undefined ? { statement } : { statement, subject }
  return (opening === undefined ? signed : { ...signed, opening }) as SignedStatement
}
