import { createHash } from 'node:crypto'
import { toCanonicalJson } from '@countersign/protocol'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { base32 } from 'multiformats/bases/base32'
import { describe, expect, test } from 'vitest'
import schema from '../../spec/receipt-v1.schema.json' with { type: 'json' }
import { canonicalBytes, parseReceipt } from '../canonicalCodec.ts'
import { isCid, toCid, toCidHash } from '../cid.ts'
import * as receiptPackage from '../index.ts'
import { createReceiptSimulator } from '../simulator/index.ts'

const { receipt, bytes } = await createReceiptSimulator().issue({ signedAt: new Date('2026-06-15T12:00:00.123Z') })

const validate = new Ajv2020({ strict: false }).compile(schema)

test('exports', () => {
  expect(Object.keys(receiptPackage).sort()).toMatchInlineSnapshot(`
    [
      "ATTESTATION_V2",
      "CAR_HEADER_BYTES",
      "DEFAULT_MAXIMUM_EVENT_DELAY_S",
      "DSTACK_SECRET",
      "MAX_ANCHOR_ENTRIES",
      "MAX_CAR_BYTES",
      "MAX_COLLATERAL_BYTES",
      "MAX_PARTS_BYTES",
      "MAX_RECEIPT_BYTES",
      "RECEIPT_SPEC",
      "RECEIPT_VERSION",
      "ReceiptError",
      "anchorSchemas",
      "anchorSteps",
      "assemble",
      "assembleAttestation",
      "assembleBatch",
      "assembleCoordinator",
      "assembleRelease",
      "assertBlockSize",
      "blockSchemas",
      "canonicalBytes",
      "checkReceipt",
      "createAnchor",
      "encodeBlock",
      "encodeCar",
      "encodeCarHeader",
      "encodeCarSection",
      "encodeReceiptCar",
      "fromCidHash",
      "hashPart",
      "isCid",
      "isStepOf",
      "measureCarSection",
      "nameSignature",
      "parseAnchorBlock",
      "parseAnyReceipt",
      "parseBlock",
      "parseCar",
      "parseCarHeader",
      "parseCarSection",
      "parseReceipt",
      "parseReceiptCar",
      "quantumNote",
      "readAnchor",
      "receiptSchema",
      "requiredSteps",
      "stepTitles",
      "toBlockRelease",
      "toCid",
      "toCidHash",
      "toReceiptRelease",
      "vaultSteps",
    ]
  `)
})

describe('canonical form', () => {
  test('bytes and receipt survive a round trip', () => {
    expect(parseReceipt(bytes)).toEqual(receipt)
    expect(canonicalBytes(parseReceipt(bytes))).toEqual(bytes)
  })

  test.each([
    ['white space', 'receipt_not_canonical', (text: string) => `${text} `],
    ['another order', 'receipt_not_canonical', (text: string) => JSON.stringify(reversed(JSON.parse(text)))],
    ['a member twice', 'receipt_not_canonical', (text: string) => text.replace('{', '{"issuedAt":"x",')],
    ['cut short', 'receipt_not_canonical', (text: string) => text.slice(0, -1)],
    ['no JSON', 'receipt_not_canonical', () => 'hello'],
    ['a list', 'receipt_version_unsupported', () => '[]'],
    [
      'another version',
      'receipt_version_unsupported',
      (text: string) => text.replace('attestation/1', 'attestation/2'),
    ],
    ['a missing member', 'receipt_malformed', (text: string) => text.replace(/"issuedAt":"[^"]*",/, '')],
    ['an exponent', 'receipt_not_canonical', (text: string) => text.replace('"chainId":31337', '"chainId":3.1337e4')],
    ['an escaped letter', 'receipt_not_canonical', (text: string) => text.replace('"issuedAt"', '"issuedA\\u0074"')],
  ])('%s is refused with %s', (_, code, edit) => {
    const edited = new TextEncoder().encode(edit(new TextDecoder().decode(bytes)))
    expect(() => parseReceipt(edited)).toThrow(expect.objectContaining({ code }))
  })

  test('rejects more than 256 KiB, in both directions', () => {
    expect(() => parseReceipt(new Uint8Array(262_145))).toThrow(expect.objectContaining({ code: 'receipt_too_large' }))
    const large = { ...receipt, transaction: { ...receipt.transaction, data: `0x${'00'.repeat(131_072)}` as const } }
    expect(() => canonicalBytes(large)).toThrow(expect.objectContaining({ code: 'receipt_too_large' }))
  })

  test.each([
    ['😀', 256, true],
    ['😀', 257, false],
    ['é', 256, true],
    ['é', 257, false],
  ])('counts the code points of a text of %s, as the schema does: %d', (character, count, isAccepted) => {
    const config = { ...receipt.signer.config, caSet: character.repeat(count) }
    const changed = { ...receipt, signer: { ...receipt.signer, config } }
    expect(validate(changed)).toBe(isAccepted)
    if (isAccepted) expect(parseReceipt(toCanonicalJson(changed))).toEqual(changed)
    else expect(() => canonicalBytes(changed)).toThrow(expect.objectContaining({ code: 'receipt_malformed' }))
  })

  test('has no personal data: no e-mail, user, slug or session', () => {
    expect(new TextDecoder().decode(bytes)).not.toMatch(/\w@\w+\.|email|user|slug|session|cookie/i)
  })
})

describe('CIDv1, raw, SHA-256, base32', () => {
  test('matches the multiformats specification', () => {
    const digest = createHash('sha256').update(bytes).digest()
    const cid = toCid(bytes)
    expect(cid).toBe(base32.encode(Uint8Array.from([0x01, 0x55, 0x12, 0x20, ...digest])))
    expect(toCidHash(cid)).toBe(digest.toString('hex'))
    expect(isCid(cid)).toBe(true)
  })

  test('the CID of an empty block is the well-known one', () => {
    expect(toCid(new Uint8Array())).toBe('bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku')
  })

  test.each([
    'QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG',
    'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi',
    'BAFKREIHDWDCEFGH4DQKJV67UZCMW7OJEE6XEDZDETOJUZJEVTENXQUVYKU',
    'bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyk',
    'bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku/',
    '',
  ])('%j is not a CID of ours', (text) => {
    expect(isCid(text)).toBe(false)
  })
})

test('the schema lists every member: rejects additions anywhere', () => {
  for (const path of memberPaths(receipt)) {
    const copy = structuredClone(receipt)
    const parent = path.reduce((value: unknown, name) => (value as Record<string, unknown>)[name], copy) as Record<
      string,
      unknown
    >
    parent.stranger = 1
    expect(() => parseReceipt(toCanonicalJson(copy))).toThrow(expect.objectContaining({ code: 'receipt_malformed' }))
  }
})

function reversed(value: object): object {
  return Object.fromEntries(Object.entries(value).toReversed())
}

/** The paths of all objects in a value. */
function memberPaths(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return []
  const below = Object.entries(value).flatMap(([name, member]) => memberPaths(member, [...path, name]))
  return Array.isArray(value) ? below : [path, ...below]
}
