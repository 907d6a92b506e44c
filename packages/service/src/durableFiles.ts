import { randomBytes } from 'node:crypto'
import { link, mkdir, open, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

type NewFile = {
  path: string
  text: string
  mode: number
  /** Makes the name of the draft unique. */
  random?: (length: number) => Uint8Array
}

/**
 * Creates a file that is complete and on disk when this returns: written and synced under another name, then linked. If two processes start
 * at
 * once, only one creates it. A crash leaves the whole file or none, perhaps with a draft of the same text next to it. Never replaces a file
 * (`EEXIST`). Needs a file system with hard links.
 *
 * @example
 * await writeNewFile({ path: 'key.json', text, mode: 0o600 })
 */
export async function writeNewFile(file: NewFile): Promise<void> {
  await withDraft(file, (draft) => link(draft, file.path))
  await syncFolder(dirname(file.path))
}

/** Throws if `writeNewFile` would: it takes the same steps with another name. Not all file systems have hard links. */
export async function assertWritable(file: Pick<NewFile, 'path' | 'random'>): Promise<void> {
  await withDraft({ ...file, text: '', mode: 0o600 }, async (draft) => {
    const linked = toDraftPath(file)
    await link(draft, linked)
    await rm(linked)
  })
  await syncFolder(dirname(file.path))
}

/** Creates a folder for its owner only, with all missing parents. Their names are on disk when this returns. */
export async function createFolder(path: string): Promise<void> {
  const folder = resolve(path)
  const first = await mkdir(folder, { recursive: true, mode: 0o700 })
  if (first === undefined) return
  for (let made = folder; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made))
}

/** A new name is durable only after syncing its folder. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function toDraftPath({ path, random = randomBytes }: Pick<NewFile, 'path' | 'random'>): string {
  return `${path}.${Buffer.from(random(8)).toString('hex')}.draft`
}

async function withDraft(newFile: NewFile, use: (draft: string) => Promise<void>): Promise<void> {
  const draft = toDraftPath(newFile)
  try {
    const file = await open(draft, 'wx', newFile.mode)
    try {
      await file.writeFile(newFile.text)
      await file.sync()
    } finally {
      await file.close()
    }
    await use(draft)
  } finally {
    await rm(draft, { force: true })
  }
}
