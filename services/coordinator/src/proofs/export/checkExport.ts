import { type FileHandle, open } from 'node:fs/promises'
import { parseJson } from '@countersign/protocol'
import {
  CAR_HEADER_BYTES,
  measureCarSection,
  parseBlock,
  parseCarHeader,
  parseCarSection,
  parseReceipt,
  ReceiptError,
} from '@countersign/receipt'
import { z } from 'zod'
import { EXPORT_VERSION } from './exportCar.ts'

type CheckedExport = {
  root: string
  /** Proofs in the index. */
  proofs: number
  blocks: number
  /** Receipts that the index marks as missing. */
  missing: number
  /** One sentence per fault. Empty if the file is complete, apart from the receipts that the index marks as missing. */
  faults: string[]
}

/** The bytes of a section that `measureCarSection` needs. */
const LENGTH_BYTES = 3
const MAX_FAULTS = 20

const entry = z.object({ slug: z.string(), cid: z.string(), missing: z.literal(true).optional() })
const page = z.union([
  z.object({ version: z.literal(EXPORT_VERSION), proofs: z.array(entry) }),
  z.object({ version: z.literal(EXPORT_VERSION), pages: z.array(z.string()), count: z.number() }),
])

/**
 * Checks that a file is a complete export: every block matches its CID, and all blocks that the index and the receipts name are present. It
 * doesn't verify the receipts. Reads the file twice and keeps the offset of each block in memory.
 */
export async function checkExport(path: string): Promise<CheckedExport> {
  const file = await open(path, 'r')
  try {
    const { root, places, faults } = await readPlaces(file)
    const report = (fault: string) => {
      if (faults.length < MAX_FAULTS) faults.push(fault)
    }
    const read = async (cid: string): Promise<Buffer | undefined> => {
      const place = places.get(cid)
      return place && readAt(file, place.offset, place.length)
    }
    let proofs = 0
    let missing = 0
    // Visits each block of the index only once. Otherwise a small file whose pages name each other could take forever.
    const visited = new Set<string>()
    const visit = async (cid: string, depth: number): Promise<void> => {
      if (visited.has(cid)) return report(`the index names a page twice: ${cid}`)
      visited.add(cid)
      const bytes = await read(cid)
      const parsed = page.safeParse(bytes && tryParse(bytes))
      if (!parsed.success || depth > 8) return report(`the index is incomplete or malformed: ${cid}`)
      if ('pages' in parsed.data) {
        for (const child of parsed.data.pages) await visit(child, depth + 1)
        if (depth === 0 && parsed.data.count !== proofs)
          report(`the index names ${proofs} of ${parsed.data.count} proofs`)
        return
      }
      for (const { slug, cid: receipt, missing: isMissing } of parsed.data.proofs) {
        proofs += 1
        if (isMissing) missing += 1
        const absent = isMissing ? undefined : await findMissing(receipt, read)
        if (absent !== undefined) report(`${slug}: ${absent} is missing`)
      }
    }
    if (root !== '') await visit(root, 0)
    return { root, proofs, blocks: places.size, missing, faults }
  } finally {
    await file.close()
  }
}

type Place = { offset: number; length: number }

/** Reads and hashes every block. Stops at the first fault, because the position of the next block is then unknown. */
async function readPlaces(file: FileHandle) {
  const places = new Map<string, Place>()
  const faults: string[] = []
  const { size } = await file.stat()
  let root = ''
  let offset = 0
  try {
    root = parseCarHeader(await readAt(file, 0, CAR_HEADER_BYTES))
    offset = CAR_HEADER_BYTES
    while (offset < size) {
      const length = measureCarSection(await readAt(file, offset, LENGTH_BYTES))
      const { cid, block } = parseCarSection(await readAt(file, offset, length))
      places.set(cid, { offset: offset + length - block.length, length: block.length })
      offset += length
    }
  } catch (error) {
    if (!(error instanceof ReceiptError)) throw error
    faults.push(root === '' ? 'this is not a CAR with one root of this format' : `${error.details}, at byte ${offset}`)
  }
  return { root, places, faults }
}

async function readAt(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length)
  const { bytesRead } = await file.read(buffer, 0, length, offset)
  return buffer.subarray(0, bytesRead)
}

/** Returns the CID of the first missing block: the receipt or a block that it names. */
async function findMissing(
  cid: string,
  read: (cid: string) => Promise<Buffer | undefined>,
): Promise<string | undefined> {
  const bytes = await read(cid)
  if (bytes === undefined) return cid
  try {
    for (const named of nameBlocks(bytes)) if ((await read(named)) === undefined) return named
    const release = toAttestation(bytes)?.coordinator.release
    const block = release === undefined ? undefined : await read(release)
    if (block === undefined) return undefined
    const { coordinator, collateral } = parseBlock('release', block)
    for (const named of [coordinator, collateral]) if ((await read(named)) === undefined) return named
    return undefined
  } catch {
    return `a block that ${cid} names`
  }
}

function nameBlocks(bytes: Buffer): string[] {
  const attestation = toAttestation(bytes)
  if (attestation === undefined) return [parseReceipt(bytes).signer.collateral]
  const { signer, coordinator, policy } = attestation
  return [signer.batch, coordinator.release, ...(policy === undefined ? [] : [policy])]
}

/** Returns undefined for a receipt of version 1. */
function toAttestation(bytes: Buffer) {
  const json = tryParse(bytes) as { version?: unknown } | undefined
  return String(json?.version).startsWith('countersign-attestation/2') ? parseBlock('attestation', bytes) : undefined
}

function tryParse(bytes: Buffer): unknown {
  try {
    return parseJson(bytes)
  } catch {
    return undefined
  }
}
