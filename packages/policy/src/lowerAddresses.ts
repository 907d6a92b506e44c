import { isAddress, isPlainObject, isPrefixedHex } from '@countersign/protocol/core'
import { malformed } from './policyFields.ts'

/** Returns part of a policy with its addresses in lower case. Leaves malformed parts unchanged: `assertPolicy` rejects them. */
type Change = (value: unknown, path: string) => unknown

/** Returns a policy with its addresses in lower case. Copied addresses have an EIP-55 checksum; a wrong one is a typing error. */
export function lowerAddresses(policy: unknown): unknown {
  return lowerPolicy(policy, '')
}

const lowerAddress: Change = (value, path) => {
  if (!isPrefixedHex(value, 20)) return value
  if (!isAddress(value)) throw malformed(`${path} has a wrong address checksum (EIP-55)`)
  return value.toLowerCase()
}

const lowerArgument: Change = (value, path) =>
  isPlainObject(value) && value.type === 'address' ? inMember('oneOf', inItems(lowerAddress))(value, path) : value

const lowerRule: Change = (value, path) =>
  [
    inMember('to', inItems(lowerAddress)),
    inMember('payees', inItems(lowerAddress)),
    inMember('spenders', inItems(lowerAddress)),
    inMember('arguments', inItems(lowerArgument)),
    inMember('domains', inItems(inMember('verifyingContract', lowerAddress))),
  ].reduce((rule, change) => change(rule, path), value)

const lowerPolicy: Change = (value, path) =>
  inMember('rules', inItems(lowerRule))(
    inMember('budgets', inItems(inMember('token', lowerAddress)))(value, path),
    path,
  )

function inMember(name: string, change: Change): Change {
  return (value, path) => {
    if (!isPlainObject(value) || !Object.hasOwn(value, name)) return value
    return { ...value, [name]: change(value[name], path === '' ? name : `${path}.${name}`) }
  }
}

function inItems(change: Change): Change {
  return (value, path) => (Array.isArray(value) ? value.map((item, at) => change(item, `${path}[${at}]`)) : value)
}
