import { isPlainObject, type TypedData } from '@countersign/protocol'
import type { Fact } from './contentWords.ts'
import { toPrintable, toPrintableLines } from './toPrintable.ts'

/** Every field of typed data under its path, domain first, in the order of the types. */
export function flattenTypedData({ domain, types, primaryType, message }: TypedData): Fact[] {
  const facts: Fact[] = [{ name: 'Type', value: toPrintable(String(primaryType)) }]
  const add = (path: string, value: unknown, type: string) => {
    if (Array.isArray(value)) {
      if (value.length === 0) return void facts.push({ name: path, value: '(none)' })
      return value.forEach((item, index) => {
        add(`${path}[${index}]`, item, type.replace(/\[\d*\]$/, ''))
      })
    }
    if (!isPlainObject(value)) return void facts.push({ name: path, value: toText(value) })
    for (const [name, memberType] of orderMembers(value, types, type)) {
      add(`${path}.${toPrintable(name)}`, value[name], memberType)
    }
  }
  add('domain', domain, 'EIP712Domain')
  add('message', message, primaryType)
  return facts
}

/** As the type has them; what it does not name comes after, since nothing that is shown may be left out. */
function orderMembers(value: Record<string, unknown>, types: TypedData['types'], type: string): [string, string][] {
  const declared = Object.hasOwn(types, type) ? types[type] : undefined
  const named = (Array.isArray(declared) ? declared : []).filter(
    (member) => isMember(member) && Object.hasOwn(value, member.name),
  )
  const names = new Set(named.map(({ name }) => name))
  const others = Object.keys(value).filter((name) => !names.has(name))
  return [
    ...named.map(({ name, type: memberType }): [string, string] => [name, memberType]),
    ...others.map((name): [string, string] => [name, '']),
  ]
}

function isMember(member: unknown): member is { name: string; type: string } {
  return isPlainObject(member) && typeof member.name === 'string' && typeof member.type === 'string'
}

function toText(value: unknown): string {
  return toPrintableLines(typeof value === 'string' ? value : String(value))
}
