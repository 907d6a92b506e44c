import { randomUUID } from 'node:crypto'
import { access, type FileHandle, link, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { assertWritable, readCode, syncFolder } from '@countersign/service'

/** Why nothing is written: a file is not replaced, whatever is in it; and without hard links a file cannot get its name so. */
export class ExportFileError extends Error {
  override name = 'ExportFileError'
  readonly code: 'file_exists' | 'links_missing'
  constructor(code: ExportFileError['code'], path: string) {
    super(code === 'file_exists' ? `${path} is there already` : `the file system of ${path} has no hard links`)
    this.code = code
  }
}

/** FAT, exFAT and some of FUSE: as Linux says it, and as others do. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])

type ExportFile = {
  readonly size: number
  append(bytes: Uint8Array): Promise<void>
  /** Writes these bytes in place of the first ones. After it the file is on the disk, whole and under its name. */
  finish(start: Uint8Array): Promise<void>
  /** Leaves nothing behind. */
  discard(): Promise<void>
}

/** A file that has its name only when it is whole. Two runs for one name do not meet: the second to finish is refused. */
export async function createExportFile(path: string): Promise<ExportFile> {
  // Before the work of hours, not only after it.
  if (await isThere(path)) throw new ExportFileError('file_exists', path)
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
      // Unlike a rename it replaces nothing.
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

/** One write may take less than it is given, as on a disk that is nearly full. */
export async function writeAll(file: Pick<FileHandle, 'write'>, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done)
    if (bytesWritten === 0) throw new Error('the disk takes nothing more')
    done += bytesWritten
  }
}

function isLinkRefused(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && error.syscall === 'link' && NO_LINKS.has(readCode(error) ?? '')
}

async function isThere(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch (error) {
    if (readCode(error) === 'ENOENT') return false
    throw error
  }
}
