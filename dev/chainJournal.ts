import { type FileHandle, open, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncFolder } from '@countersign/service'
import type { Hex } from 'viem'

/** A block that callers may see. The local chain mines one for each transaction. */
export type JournaledBlock = {
  number: number
  /** In seconds. */
  timestamp: number
  hash: Hex
  /** The signed transaction; null in an empty block. */
  raw: Hex | null
}

export type ChainJournal = {
  /** The blocks at the time of opening, oldest first. */
  blocks: readonly JournaledBlock[]
  /** Whether half a line was dropped: the process was killed before it could answer a caller. */
  wasTorn: boolean
  /** Resolves when the block is on disk. */
  append(block: JournaledBlock): Promise<void>
  close(): Promise<void>
}

/** Replays only complete blocks of this program, in order. */
export class ChainJournalError extends Error {
  override name = 'ChainJournalError'
  constructor(path: string, reason: string) {
    super(`${path} ${reason}; \`npm run dev -- --reset\` starts with an empty chain.`)
  }
}

const FORMAT = 'countersign-dev-chain/1'

/** Opens the journal of a chain, or creates it: JSON lines, the first of which names the chain. */
export async function openChainJournal({ path, chainId }: { path: string; chainId: number }): Promise<ChainJournal> {
  const file = await open(path, 'a', 0o600)
  try {
    const bytes = await readFile(path)
    // A line ends with a newline. Bytes after the last newline were cut off.
    let length = bytes.lastIndexOf(0x0a) + 1
    const wasTorn = length < bytes.length
    if (wasTorn) await file.truncate(length)
    const [header, ...lines] = bytes.subarray(0, length).toString('utf8').split('\n').slice(0, -1)
    if (header === undefined) {
      length += await writeLine(file, { format: FORMAT, chainId })
      await syncFolder(dirname(path))
    } else {
      assertHeader(path, header, chainId)
    }
    const blocks = lines.map((line, index) => parseBlock(path, line, index + 1))
    return {
      blocks,
      wasTorn,
      async append(block) {
        if ((await file.stat()).size !== length) throw new ChainJournalError(path, 'is in use by another process')
        length += await writeLine(file, block)
      },
      close: () => file.close(),
    }
  } catch (error) {
    await file.close()
    throw error
  }
}

async function writeLine(file: FileHandle, value: object): Promise<number> {
  const line = Buffer.from(`${JSON.stringify(value)}\n`)
  await file.appendFile(line)
  await file.sync()
  return line.length
}

function assertHeader(path: string, line: string, chainId: number) {
  const header = parseObject(line)
  if (header?.format !== FORMAT) throw new ChainJournalError(path, 'is not a journal of this version')
  if (header.chainId !== chainId) {
    throw new ChainJournalError(path, `is of chain ${String(header.chainId)}, not ${chainId}`)
  }
}

function parseBlock(path: string, line: string, expected: number): JournaledBlock {
  const { number, timestamp, hash, raw } = parseObject(line) ?? {}
  const isValid =
    number === expected &&
    Number.isSafeInteger(timestamp) &&
    isHex(hash) &&
    hash.length === 66 &&
    (raw === null || isHex(raw))
  if (!isValid) throw new ChainJournalError(path, `is damaged at line ${expected + 1}`)
  return { number, timestamp: timestamp as number, hash, raw }
}

function isHex(value: unknown): value is Hex {
  return typeof value === 'string' && /^0x(?:[0-9a-f]{2})+$/i.test(value)
}

function parseObject(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
