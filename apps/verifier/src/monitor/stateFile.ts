import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import {
  createLogsMemory,
  formatMonitorState,
  type LogsMemory,
  MAX_STATE_BYTES,
  parseMonitorState,
  VerifierError,
  withSource,
} from '@countersign/verify'
import { readFileBounded, toSystemCode } from '../readFileBounded.ts'

/** What an earlier run saw of the log. A file that is not there yet is a first run; one that cannot be read is no first run. */
export async function readState(path: string | undefined): Promise<LogsMemory> {
  if (path === undefined) return createLogsMemory()
  try {
    const bytes = await readFileBounded(path, { maxBytes: MAX_STATE_BYTES })
    return withSource(path, () => parseMonitorState(bytes))
  } catch (error) {
    // A disk that does not answer may still have the file, which the first write would replace.
    const cause = error instanceof VerifierError ? error.cause : undefined
    if (toSystemCode(cause) === 'ENOENT') return createLogsMemory()
    throw error
  }
}

/** Replaces the file as a whole: a run that ends at any moment leaves the old one or the new one. What could not be read back is not written. */
export async function writeState(
  path: string | undefined,
  logs: LogsMemory,
  { maxBytes = MAX_STATE_BYTES }: { maxBytes?: number } = {},
): Promise<void> {
  if (path === undefined) return
  try {
    const bytes = new TextEncoder().encode(formatMonitorState(logs))
    if (bytes.length > maxBytes) {
      const why = `it would have ${bytes.length} bytes, and at most ${maxBytes} are read back; the old one stays`
      throw unwritable(`${path} (${why}; look at fewer wallets, with a state each)`)
    }
    await sync(`${path}.new`, 'w', bytes)
    await rename(`${path}.new`, path)
    await sync(dirname(path), 'r')
  } catch (cause) {
    if (cause instanceof VerifierError) throw cause
    throw unwritable(`${path} (${toSystemCode(cause) ?? 'unknown'})`, cause)
  }
}

function unwritable(details: string, cause?: unknown) {
  return new VerifierError('file_unwritable', 'cannot write the state', { details, cause })
}

async function sync(path: string, flags: 'r' | 'w', bytes?: Uint8Array): Promise<void> {
  const file = await open(path, flags, 0o600)
  try {
    if (bytes !== undefined) await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
}
