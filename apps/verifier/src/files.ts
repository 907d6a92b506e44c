import { open, rename, stat } from 'node:fs/promises'
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

/**
 * Reads a regular file, since a device or pipe could be endless. If the file exceeds `maxBytes`, returns one more byte, so that the parser
 * rejects it as too large.
 */
export async function readFileBounded(
  path: string,
  { maxBytes }: { maxBytes: number },
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await readAtMost(path, maxBytes + 1)
  if (bytes.length === 0) throw unreadable(path, 'the file is empty')
  return bytes
}

/** Whether anything exists at this path. */
export async function isPathTaken(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    // A path without permission exists. Other errors mean that the path is invalid.
    return toSystemCode(error) === 'EACCES'
  }
}

async function readAtMost(path: string, limit: number): Promise<Uint8Array<ArrayBuffer>> {
  try {
    // Checked before opening, because opening a pipe waits for a writer.
    const found = await stat(path)
    if (found.isDirectory()) throw unreadable(path, 'a directory, not a file')
    if (!found.isFile()) throw unreadable(path, 'not a regular file')
    const file = await open(path, 'r')
    try {
      const buffer = new Uint8Array(Math.min(found.size + 1, limit))
      let length = 0
      while (length < buffer.length) {
        const { bytesRead } = await file.read(buffer, length, buffer.length - length, length)
        if (bytesRead === 0) break
        length += bytesRead
      }
      return buffer.slice(0, length)
    } finally {
      await file.close()
    }
  } catch (error) {
    const code = toSystemCode(error)
    if (code === undefined) throw error
    throw unreadable(path, REASONS[code] ?? code, error)
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'file not found',
  ENOTDIR: 'file not found',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
}

/** The system's error code, if any. */
export function toSystemCode(error: unknown): string | undefined {
  return error instanceof Error && 'syscall' in error && 'code' in error ? String(error.code) : undefined
}

function unreadable(path: string, reason: string, cause?: unknown) {
  return new VerifierError('file_unreadable', 'cannot read the file', { details: `${path} (${reason})`, cause })
}

/** Reads what earlier runs saw of the log. A missing file is a first run, an unreadable one an error. */
export async function readState(path: string | undefined): Promise<LogsMemory> {
  if (path === undefined) return createLogsMemory()
  try {
    const bytes = await readFileBounded(path, { maxBytes: MAX_STATE_BYTES })
    return withSource(path, () => parseMonitorState(bytes))
  } catch (error) {
    // A disk that fails may still have the file, and the first write would replace it.
    const cause = error instanceof VerifierError ? error.cause : undefined
    if (toSystemCode(cause) === 'ENOENT') return createLogsMemory()
    throw error
  }
}

/** Replaces the file atomically. Refuses to write more than can be read back. */
export async function writeState(
  path: string | undefined,
  logs: LogsMemory,
  { maxBytes = MAX_STATE_BYTES }: { maxBytes?: number } = {},
): Promise<void> {
  if (path === undefined) return
  try {
    const bytes = new TextEncoder().encode(formatMonitorState(logs))
    if (bytes.length > maxBytes) {
      const why = `its ${bytes.length} bytes exceed the limit of ${maxBytes}, so the old file was kept`
      throw unwritable(`${path} (${why}; monitor fewer wallets per state file)`)
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
