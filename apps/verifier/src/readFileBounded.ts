import { open, stat } from 'node:fs/promises'
import { VerifierError } from '@countersign/verify'

/**
 * Reads a regular file; a device or pipe could go on for ever. Of a file that is larger than `maxBytes` one byte more comes
 * back, by which the parser that gets it sees that it is too large.
 */
export async function readFileBounded(
  path: string,
  { maxBytes }: { maxBytes: number },
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await readAtMost(path, maxBytes + 1)
  if (bytes.length === 0) throw unreadable(path, 'the file is empty')
  return bytes
}

/** Whether anything, of whatever kind, stands under this path. */
export async function isPathTaken(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    // What we may not look at is there; all else cannot be a path of ours.
    return toSystemCode(error) === 'EACCES'
  }
}

async function readAtMost(path: string, limit: number): Promise<Uint8Array<ArrayBuffer>> {
  try {
    // Looked at before it is opened: opening a pipe waits for a writer.
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
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
}

/** The name of the fault where the system refused a call. */
export function toSystemCode(error: unknown): string | undefined {
  return error instanceof Error && 'syscall' in error && 'code' in error ? String(error.code) : undefined
}

function unreadable(path: string, reason: string, cause?: unknown) {
  return new VerifierError('file_unreadable', 'cannot read the file', { details: `${path} (${reason})`, cause })
}
