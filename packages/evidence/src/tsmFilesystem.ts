import { constants } from 'node:fs'
import { mkdir, open, rmdir } from 'node:fs/promises'

/** The four file operations that configfs-tsm needs. Errors have their errno as `code`, as in Node. */
export type TsmFilesystem = {
  mkdir(path: string): Promise<void>
  /** Writes an existing attribute with one system call. */
  write(path: string, bytes: Uint8Array): Promise<void>
  /** Reads an attribute, but at most one byte more than `maxLength`, to detect longer ones. */
  read(path: string, maxLength: number): Promise<Uint8Array>
  rmdir(path: string): Promise<void>
}

/**
 * The kernel's file system. `position` is always null, because binary attributes of configfs can't seek. An attribute takes its value from a
 * single write (fs/configfs/file.c, `configfs_write_iter`), and a binary one only on close.
 */
export const systemTsmFilesystem: TsmFilesystem = {
  async mkdir(path) {
    await mkdir(path)
  },

  async write(path, bytes) {
    // Neither O_CREAT nor O_TRUNC: writing a missing attribute must fail and create no file.
    const file = await open(path, constants.O_WRONLY)
    try {
      const { bytesWritten } = await file.write(bytes, 0, bytes.length, null)
      if (bytesWritten !== bytes.length) throw Object.assign(new Error('short write'), { code: 'EIO' })
    } finally {
      await file.close()
    }
  },

  async read(path, maxLength) {
    const file = await open(path, constants.O_RDONLY)
    try {
      const buffer = new Uint8Array(maxLength + 1)
      let length = 0
      while (length < buffer.length) {
        const { bytesRead } = await file.read(buffer, length, buffer.length - length, null)
        if (bytesRead === 0) break
        length += bytesRead
      }
      return buffer.slice(0, length)
    } finally {
      await file.close()
    }
  },

  async rmdir(path) {
    await rmdir(path)
  },
}
