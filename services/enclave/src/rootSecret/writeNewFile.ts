import { link, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Random } from '../ports.ts'

type NewFile = { path: string; text: string; mode: number; random: Random }

/**
 * Creates a file that is whole and on disk when this returns: written and synced under another name, then linked. Of two
 * processes that start at once one creates it, a crash leaves all or nothing, and no file is replaced (`EEXIST`).
 */
export async function writeNewFile(file: NewFile): Promise<void> {
  await withDraft(file, (draft) => link(draft, file.path))
  await syncFolder(file.path)
}

/** Throws where `writeNewFile` would: it takes the same steps, with another name in place of the file's. Not all file systems have links. */
export async function assertWritable({ path, random }: Pick<NewFile, 'path' | 'random'>): Promise<void> {
  await withDraft({ path, text: '', mode: 0o600, random }, async (draft) => {
    const linked = toDraftPath(path, random)
    await link(draft, linked)
    await rm(linked)
  })
  await syncFolder(path)
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function toDraftPath(path: string, random: Random): string {
  return `${path}.${Buffer.from(random(8)).toString('hex')}.draft`
}

async function withDraft({ path, text, mode, random }: NewFile, use: (draft: string) => Promise<void>) {
  const draft = toDraftPath(path, random)
  try {
    const file = await open(draft, 'wx', mode)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await use(draft)
  } finally {
    await rm(draft, { force: true })
  }
}
