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
  const folder = await open(dirname(file.path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** Throws where `writeNewFile` could not write its draft. */
export async function assertWritable({ path, random }: Pick<NewFile, 'path' | 'random'>): Promise<void> {
  await withDraft({ path, text: '', mode: 0o600, random }, async () => {})
}

async function withDraft({ path, text, mode, random }: NewFile, use: (draft: string) => Promise<void>) {
  const draft = `${path}.${Buffer.from(random(8)).toString('hex')}.draft`
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
