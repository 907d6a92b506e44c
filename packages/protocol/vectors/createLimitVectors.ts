// Writes the test vectors of limits to this folder:
//   node -C source packages/protocol/vectors/createLimitVectors.ts
// `src/limitVectors.test.ts` compares the file with this script, and the code with the file.

import { writeFileSync } from 'node:fs'
import { assertEnclaveSettings, hashTypedData, ServiceError, type TypedData, toPrefixedHex } from '../src/index.ts'

/** The digest of accepted typed data, or the code of the error. */
export function hashOrReject(typedData: unknown): { digest: string } | { code: string } {
  try {
    return { digest: toPrefixedHex(hashTypedData(typedData as TypedData)) }
  } catch (error) {
    if (error instanceof ServiceError) return { code: error.code }
    throw error
  }
}

export function isSettings(settings: unknown): boolean {
  try {
    assertEnclaveSettings(settings)
    return true
  } catch {
    return false
  }
}

// RFC 8032 §7.1, tests 1 and 2.
const witness = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
const otherWitness = '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c'
const domain = { name: 'x' }
const one = (type: string, value: unknown, others: object = {}) => ({
  domain,
  types: { One: [{ name: 'value', type }], ...others },
  primaryType: 'One',
  message: { value },
})
const named = (name: string) => ({
  domain,
  types: { [name]: [{ name: 'value', type: 'bool' }] },
  primaryType: name,
  message: { value: true },
})
const strings = (count: number) =>
  one(
    'string[]',
    Array.from({ length: count }, () => ''),
  )

function createTypedData(): [name: string, typedData: unknown][] {
  const names = ['uint7', 'uint', 'int256', 'bytes', 'bytes33', 'fixed', 'ufixed', 'fixed8x1', 'function', 'string']
  const allowedNames = ['fixedPoint', 'ufixed8', 'interest', 'Bool', '_', 'bytesN']
  const integers = ['0x', '0xf', '0x0F', '00', '-0', '-1', '+1', '1e2', ' 1', '', '٣']
  const numbers = [2 ** 53 - 1, 2 ** 53, 1.5, -1]
  const brackets = ['[1]', '[01]', '[0]', '[-1]', '[ 1]', '[1', '[]']
  return [
    ...[...names, ...allowedNames, '1st', 'a b', ''].map((name): [string, unknown] => [
      `a struct ${name}`,
      named(name),
    ]),
    ...integers.map((text): [string, unknown] => [`the text ${JSON.stringify(text)} as uint256`, one('uint256', text)]),
    ['the text "-1" as int8', one('int8', '-1')],
    ['the text "-129" as int8', one('int8', '-129')],
    ['the text "256" as uint8', one('uint8', '256')],
    ['2^256 - 1 as uint256', one('uint256', String((1n << 256n) - 1n))],
    ['2^256 as uint256', one('uint256', String(1n << 256n))],
    ['65 hex digits as uint256', one('uint256', `0x0${'1'.repeat(64)}`)],
    ...numbers.map((number): [string, unknown] => [`the number ${number} as uint256`, one('uint256', number)]),
    ['the number 1 - 2^53 as int256', one('int256', 1 - 2 ** 53)],
    ['the number -2^53 as int256', one('int256', -(2 ** 53))],
    ...brackets.map((text): [string, unknown] => [`the type bool${text}`, one(`bool${text}`, [true])]),
    ['the type uint without a size', one('uint', '1')],
    ['the type bytes0', one('bytes0', '0x')],
    ['bytes with an odd number of digits', one('bytes', '0x0')],
    ['a member of a type with more than name and type', { ...one('bool', true), types: { One: [moreThanType()] } }],
    [
      'a struct that nothing refers to with an unknown type',
      one('bool', true, { Two: [{ name: 'x', type: 'Three' }] }),
    ],
    ['4,096 blocks', strings(LARGEST)],
    ['4,097 blocks', strings(LARGEST + 1)],
    [
      'a domain with a chainId in hex',
      {
        ...one('bool', true, { EIP712Domain: [{ name: 'chainId', type: 'uint256' }] }),
        domain: { chainId: '0x1' },
      },
    ],
    ['an empty domain', { ...one('bool', true), domain: {} }],
  ]
}

/** Empty strings that fill the limit: 3,314 blocks for them, 780 for their list of 32 bytes each, 1 for the type and 1 for the struct. */
const LARGEST = 3_314

function moreThanType() {
  return { name: 'value', type: 'bool', indexed: true }
}

function createSettings(): [name: string, settings: unknown][] {
  const withOrigins = (...origins: string[]) => ({
    entropy: [{ kind: 'satellite', key: witness }],
    implementations: [],
    log: { origins, witnesses: [witness], quorum: 1 },
    sessions: 'any',
  })
  const origins: [string, string][] = [
    ['255 bytes of ASCII', 'a'.repeat(255)],
    ['256 bytes of ASCII', 'a'.repeat(256)],
    ['254 bytes in 127 characters', 'é'.repeat(127)],
    ['256 bytes in 128 characters', 'é'.repeat(128)],
    ['252 bytes in 63 code points', '😀'.repeat(63)],
    ['a plus sign', 'log+example'],
    ['a space', 'log example'],
    ['a no-break space', 'log\u00a0example'],
    ['an ideographic space', 'log\u3000example'],
    ['a zero width no-break space', 'log\ufeffexample'],
    ['a zero width space', 'log\u200bexample'],
    ['a tab', 'log\texample'],
    ['a NUL', 'log\u0000example'],
    ['an escape character', 'log\u001bexample'],
    ['a delete character', 'log\u007fexample'],
    ['a control character of Latin-1', 'log\u0085example'],
    ['nothing', ''],
  ]
  const sources = withOrigins('a')
  return [
    ...origins.map(([name, origin]): [string, unknown] => [`an origin with ${name}`, withOrigins(origin)]),
    ['two origins in order', withOrigins('a', 'b')],
    ['two origins out of order', withOrigins('b', 'a')],
    ['an origin twice', withOrigins('a', 'a')],
    ['a witness that is no point', { ...sources, log: { ...sources.log, witnesses: ['02'.padEnd(64, '0')] } }],
    ['half of the witnesses', { ...sources, log: { ...sources.log, witnesses: [otherWitness, witness], quorum: 1 } }],
    ['a source that is no point', { ...sources, entropy: [{ kind: 'satellite', key: '02'.padEnd(64, '0') }] }],
    ['a source that does not sign', { ...sources, entropy: [{ kind: 'unsigned' }] }],
    ['no source', { ...sources, entropy: [] }],
    ['bound sessions', { ...sources, sessions: 'bound' }],
    ['sessions of an unknown kind', { ...sources, sessions: 'none' }],
    ['sessions left out', { ...sources, sessions: undefined }],
  ]
}

/** Every vector, as plain JSON. */
export function createLimitVectors() {
  return {
    version: 'countersign-limit-vectors/1',
    notes: [
      'typedData: the digest of what is accepted, or the error code. settings: whether they are accepted.',
      'spec/protocol.md has the rules.',
    ],
    typedData: createTypedData().map(([name, typedData]) => ({ name, typedData, ...hashOrReject(typedData) })),
    settings: createSettings().map(([name, settings]) => ({ name, settings, isAccepted: isSettings(settings) })),
  }
}

/** The file, to the byte: one line per vector, in ASCII. */
export function toLimitVectorFile({ version, notes, ...lists }: ReturnType<typeof createLimitVectors>): string {
  const members = Object.entries({ version, notes }).map(([name, value]) => `"${name}": ${JSON.stringify(value)}`)
  for (const [name, list] of Object.entries(lists)) {
    members.push(`"${name}": [\n${list.map((one) => `    ${JSON.stringify(one)}`).join(',\n')}\n  ]`)
  }
  const text = `{\n  ${members.join(',\n  ')}\n}\n`
  return text.replace(/[^\n -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

if (import.meta.main) {
  writeFileSync(new URL('limits-v1.vectors.json', import.meta.url), toLimitVectorFile(createLimitVectors()))
}
