import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Anchor, type BlockRole, mapBlock, type Outcome, type Reader, type Request } from './protocol.ts'

/** A part of some bytes: of a file in `files/` (all of it, or from `start` to `end`), or given here. */
export type Piece = { file: string; start?: number; end?: number } | { text: string } | { hex: string }

export type ReceiptCase = {
  number: number
  name: string
  /** The file that states the expectation. */
  source: string
  receipt?: Piece[]
  blocks?: Partial<Record<BlockRole, Piece[]>>
  car?: Piece[]
  opening?: Piece[]
  cid?: string
  anchor?: Anchor<Piece[]>
  /** The name of a file in `files/`. */
  reader: string
  expected: Outcome
}

/** The numbered cases, and the request of each. */
export function readCases(folder: string = import.meta.dirname) {
  const cases: ReceiptCase[] = JSON.parse(readFileSync(join(folder, 'cases.json'), 'utf8'))
  const files = new Map<string, Buffer>()
  const readFile = (name: string) => {
    const known = files.get(name)
    if (known !== undefined) return known
    const bytes = readFileSync(join(folder, 'files', name))
    if (createHash('sha256').update(bytes).digest('hex') !== name) throw new Error(`files/${name} has another hash`)
    files.set(name, bytes)
    return bytes
  }
  return { cases, toRequest: (one: ReceiptCase) => toRequest(one, readFile) }
}

/** Joins the pieces of a case. */
function toRequest(one: ReceiptCase, readFile: (name: string) => Uint8Array): Request {
  const { number, receipt, blocks, car, opening, cid, anchor } = one
  const join = (pieces: readonly Piece[]) => joinPieces(pieces, readFile).toString('base64')
  return {
    id: number,
    ...(receipt && { receipt: join(receipt) }),
    ...(blocks && { blocks: Object.fromEntries(Object.entries(blocks).map(([role, block]) => [role, join(block)])) }),
    ...(car && { car: join(car) }),
    ...(cid !== undefined && { cid }),
    ...(opening && { opening: join(opening) }),
    ...(anchor && { anchor: mapBlock(anchor, join) }),
    reader: JSON.parse(new TextDecoder().decode(readFile(one.reader))) as Reader,
  }
}

function joinPieces(pieces: readonly Piece[], readFile: (name: string) => Uint8Array): Buffer {
  return Buffer.concat(
    pieces.map((piece) => {
      if ('text' in piece) return Buffer.from(piece.text)
      if ('hex' in piece) return Buffer.from(piece.hex, 'hex')
      return readFile(piece.file).subarray(piece.start, piece.end)
    }),
  )
}
