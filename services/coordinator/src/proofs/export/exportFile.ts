import { randomUUID } from 'node:crypto'
import { access, type FileHandle, link, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { assertWritable, readCode, syncFolder } from '@countersign/service'

/** The file exists already, or the file system lacks the hard links that create it without replacing a file. */
export class ExportFileError extends Error {
  override name = 'ExportFileError'
  readonly code: 'file_exists' | 'links_missing'
  constructor(code: ExportFileError['code'], path: string) {
    super(code === 'file_exists' ? `${path} already exists` : `the file system of ${path} has no hard links`)
    this.code = code
  }
}

/** Error codes for missing hard links: FAT, exFAT and some FUSE file systems, on Linux and elsewhere. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])

type ExportFile = {
  readonly size: number
  append(bytes: Uint8Array): Promise<void>
  /** Overwrites the first bytes, syncs the file and gives it its name. */
  finish(start: Uint8Array): Promise<void>
  /** Deletes the unfinished file. */
  discard(): Promise<void>
}

/** Creates a file that gets its name only when it is complete. If two runs write to one name, the second to finish fails. */
export async function createExportFile(path: string): Promise<ExportFile> {
  // Checked at the start, too, because an export can take hours.
  if (await exists(path)) throw new ExportFileError('file_exists', path)
  await assertWritable({ path }).catch((error: unknown) => {
    throw isLinkRefused(error) ? new ExportFileError('links_missing', path) : error
  })
  const temporary = `${path}.${randomUUID()}.partial`
  const file = await open(temporary, 'wx')
  let size = 0
  return {
    get size() {
      return size
    },
    async append(bytes) {
      await writeAll(file, bytes, size)
      size += bytes.length
    },
    async finish(start) {
      await writeAll(file, start, 0)
      await file.sync()
      await file.close()
      // Unlike a rename, a link fails if the path exists.
      await link(temporary, path).catch((error: unknown) => {
        throw readCode(error) === 'EEXIST' ? new ExportFileError('file_exists', path) : error
      })
      await rm(temporary)
      await syncFolder(dirname(path))
    },
    async discard() {
      await file.close().catch(() => {})
      await rm(temporary, { force: true })
    },
  }
}

/** A write may be partial, for example on a nearly full disk. */
export async function writeAll(file: Pick<FileHandle, 'write'>, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done)
    if (bytesWritten === 0) throw new Error('the disk is full')
    done += bytesWritten
  }
}

function isLinkRefused(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && error.syscall === 'link' && NO_LINKS.has(readCode(error) ?? '')
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch (error) {
    if (readCode(error) === 'ENOENT') return false
    throw error
  }
}
