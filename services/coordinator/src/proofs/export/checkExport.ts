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
  /** What the index lists. */
  proofs: number
  blocks: number
  /** Receipts of which the index says that they could not be had. */
  missing: number
  /** In words; none where every receipt is there, whole, with all that it names. */
  faults: string[]
}

/** Of a section: what `measureCarSection` needs. */
const LENGTH_BYTES = 3
const MAX_FAULTS = 20

const entry = z.object({ slug: z.string(), cid: z.string(), missing: z.literal(true).optional() })
const page = z.union([
  z.object({ version: z.literal(EXPORT_VERSION), proofs: z.array(entry) }),
  z.object({ version: z.literal(EXPORT_VERSION), pages: z.array(z.string()), count: z.number() }),
])

/**
 * Whether a file is an export, and whole: each block is what its CID says, the index names receipts that are there, and those name blocks that
 * are there. Whether the receipts are genuine is for the verifier. Reads the file twice, and keeps the place of each block in memory.
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
    // Each block of the index once: a file of a few pages could otherwise name each other without an end that anybody waits for.
    const visited = new Set<string>()
    const visit = async (cid: string, depth: number): Promise<void> => {
      if (visited.has(cid)) return report(`the index names a page twice: ${cid}`)
      visited.add(cid)
      const bytes = await read(cid)
      const parsed = page.safeParse(bytes && tryParse(bytes))
      if (!parsed.success || depth > 8) return report(`the index is not whole: ${cid}`)
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
        if (absent !== undefined) report(`${slug}: ${absent} is not there`)
      }
    }
    if (root !== '') await visit(root, 0)
    return { root, proofs, blocks: places.size, missing, faults }
  } finally {
    await file.close()
  }
}

type Place = { offset: number; length: number }

/** Every block, hashed. The first fault ends it: what follows cannot be told from it. */
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
    faults.push(root === '' ? 'this is not a CAR with one root of ours' : `${error.details}, at byte ${offset}`)
  }
  return { root, places, faults }
}

async function readAt(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length)
  const { bytesRead } = await file.read(buffer, 0, length, offset)
  return buffer.subarray(0, bytesRead)
}

/** The first of a receipt and the blocks that it names that is not there, by its CID. */
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
    return `what ${cid} names`
  }
}

function nameBlocks(bytes: Buffer): string[] {
  const attestation = toAttestation(bytes)
  if (attestation === undefined) return [parseReceipt(bytes).signer.collateral]
  const { signer, coordinator, policy } = attestation
  return [signer.batch, coordinator.release, ...(policy === undefined ? [] : [policy])]
}

/** Undefined for a receipt of version 1. */
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
