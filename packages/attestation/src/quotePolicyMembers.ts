import { isHex, isPlainObject, tcbStatuses } from '@countersign/protocol'
import { codeRegisters } from './codeRegisters.ts'
import type { QuotePolicy } from './policy.ts'
import { isTdPlatform } from './tdPlatform.ts'

type MemberName = 'measurements' | 'events' | 'statuses' | 'minimumTcbEvaluationDataNumber' | 'platforms'

const REGISTERS: readonly string[] = codeRegisters

/**
 * The members of a `QuotePolicy` that operators write as JSON, and whether a value is one. An empty list is none: it would accept
 * nothing, and a reader might take it for anything.
 */
export const quotePolicyMembers: Readonly<Record<MemberName & keyof QuotePolicy, (value: unknown) => boolean>> = {
  measurements: (value) => isListOf(value, isMeasurement),
  statuses: (value) => isListOf(value, (status) => (tcbStatuses as readonly unknown[]).includes(status)),
  minimumTcbEvaluationDataNumber: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  platforms: (value) => isListOf(value, isTdPlatform),
  events: (value) =>
    isPlainObject(value) &&
    Object.keys(value).length > 0 &&
    Object.values(value).every((payloads) => isListOf(payloads, isPayload)),
}

/** Without `mrTd`, or with a misspelt register, it would be a measurement of any code. */
function isMeasurement(value: unknown): boolean {
  if (!isPlainObject(value) || !Object.hasOwn(value, 'mrTd')) return false
  return Object.entries(value).every(([name, register]) => REGISTERS.includes(name) && isHex(register, 48))
}

/** In the one spelling that is compared: another would match no log. */
function isPayload(value: unknown): boolean {
  return value === '' || isHex(value)
}

function isListOf(value: unknown, isFine: (entry: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isFine)
}
