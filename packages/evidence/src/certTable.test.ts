import { fromHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { codeOf } from '../test/evidence.ts'
import { parseCertTable, toCertTable } from './certTable.ts'

const GUID = {
  vcek: '63da758de6644564adc5f4b93be8accd',
  vlek: 'a8074bc2a25a483eaae639c045a0b8a1',
  ask: '4ab7b379bbac4fe4a02f05aef327c782',
  ark: 'c0b406a4a803495297433fb6014cd0ae',
  /** ExtraPlatformInfo of google/go-sev-guest: not a certificate, but present in real tables. */
  other: 'ecae0c0f950243b1afa20ae2e0d565b6',
  none: '00000000000000000000000000000000',
}

type Entry = { guid: string; offset: number; length: number }

/** A table with any header over `size` bytes. Each byte has its own offset as value. */
function build(entries: Entry[], size: number, { terminated = true } = {}) {
  const table = Uint8Array.from({ length: size }, (_, index) => index & 0xff)
  const view = new DataView(table.buffer)
  for (const [index, { guid, offset, length }] of entries.entries()) {
    table.set(fromHex(guid), index * 24)
    view.setUint32(index * 24 + 16, offset, true)
    view.setUint32(index * 24 + 20, length, true)
  }
  if (terminated) table.fill(0, entries.length * 24, (entries.length + 1) * 24)
  return table
}

const code = (table: Uint8Array) => codeOf((async () => parseCertTable(table))())

describe('GHCB 4.1.8.1 certificate table', () => {
  test('returns each certificate by kind, with the GUID in the byte order of its text', () => {
    const table = build(
      [
        { guid: GUID.ark, offset: 140, length: 20 },
        { guid: GUID.vcek, offset: 120, length: 10 },
        { guid: GUID.ask, offset: 130, length: 10 },
      ],
      160,
    )
    expect(parseCertTable(table)).toEqual({
      vcek: table.slice(120, 130),
      ask: table.slice(130, 140),
      ark: table.slice(140, 160),
    })
  })

  test('ignores a GUID in mixed byte order', () => {
    const mixed = '8d75da6364e66445adc5f4b93be8accd'
    expect(parseCertTable(build([{ guid: mixed, offset: 48, length: 8 }], 56))).toEqual({})
  })

  test('returns the VLEK if the host has one', () => {
    const table = build([{ guid: GUID.vlek, offset: 48, length: 8 }], 56)
    expect(parseCertTable(table)).toEqual({ vlek: table.slice(48) })
  })

  test('ignores kinds that are not certificates, gaps and padding', () => {
    const table = build(
      [
        { guid: GUID.other, offset: 80, length: 8 },
        { guid: GUID.vcek, offset: 100, length: 8 },
      ],
      4096,
    )
    expect(parseCertTable(table)).toEqual({ vcek: table.slice(100, 108) })
  })

  test('may be empty, with a terminator or without', () => {
    expect(parseCertTable(new Uint8Array())).toEqual({})
    expect(parseCertTable(new Uint8Array(24))).toEqual({})
    expect(parseCertTable(new Uint8Array(4096))).toEqual({})
  })

  test('returns copies, independent of the table', () => {
    const table = build([{ guid: GUID.vcek, offset: 48, length: 8 }], 56)
    const { vcek } = parseCertTable(table)
    table.fill(0)
    expect(vcek).toEqual(Uint8Array.from([48, 49, 50, 51, 52, 53, 54, 55]))
  })

  const vcek = { guid: GUID.vcek, offset: 72, length: 10 }
  test.each<[string, Uint8Array]>([
    ['shorter than an entry', new Uint8Array(23)],
    ['without a terminator', build([vcek], 24, { terminated: false })],
    ['with half a terminator', build([vcek], 47, { terminated: false }).fill(0, 24)],
    ['with an entry of no kind', build([{ guid: GUID.none, offset: 48, length: 8 }], 56)],
    ['with an empty entry', build([{ guid: GUID.vcek, offset: 48, length: 0 }], 56)],
    ['with an entry that starts in the header', build([{ guid: GUID.vcek, offset: 47, length: 8 }], 56)],
    ['with an entry that starts at 0', build([{ guid: GUID.vcek, offset: 0, length: 8 }], 56)],
    ['with an entry that ends one byte late', build([{ guid: GUID.vcek, offset: 48, length: 9 }], 56)],
    ['with an entry that starts beyond the end', build([{ guid: GUID.vcek, offset: 57, length: 1 }], 56)],
    ['with an end that overflows 32 bits', build([{ guid: GUID.vcek, offset: 0xffff_fff0, length: 0x20 }], 56)],
    ['with entries that overlap', build([vcek, { guid: GUID.ask, offset: 81, length: 4 }], 100)],
    ['with one entry inside another', build([{ guid: GUID.ask, offset: 74, length: 2 }, vcek], 100)],
    ['with two entries for the same bytes', build([vcek, { ...vcek, guid: GUID.ask }], 100)],
    ['with two of one kind', build([vcek, { ...vcek, offset: 82 }], 100)],
    [
      'with two of an unknown kind',
      build(
        [0, 1].map((n) => ({ ...vcek, guid: GUID.other, offset: 72 + 10 * n })),
        100,
      ),
    ],
    ['longer than 64 KiB', new Uint8Array(65_537)],
  ])('%s is malformed', async (_name, table) => {
    expect(await code(table)).toBe('cert_table_malformed')
  })

  test('any single header byte changed never reads outside the table', async () => {
    const good = build([vcek], 100)
    for (let index = 0; index < 48; index++) {
      for (const mask of [1, 0x80, 0xff]) {
        const table = Uint8Array.from(good)
        table[index] = (table[index] ?? 0) ^ mask
        expect(['none', 'cert_table_malformed']).toContain(await code(table))
      }
    }
  })

  test('reads what it writes', () => {
    const certificates = { vlek: Uint8Array.of(1), ask: Uint8Array.of(2, 2), ark: Uint8Array.of(3, 3, 3) }
    expect(parseCertTable(toCertTable(certificates))).toEqual(certificates)
  })
})
