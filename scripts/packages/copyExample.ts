import { cp, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'

/** The folders that an install or a build adds to an example. */
const MADE = new Set(['node_modules', 'dist', '.next', 'next-env.d.ts'])

/** Copies an example to a folder outside the checkout and replaces some texts, such as the service's address. */
export async function copyExample(
  example: string,
  { to, replaced }: { to: string; replaced: Readonly<Record<string, string>> },
): Promise<void> {
  await cp(example, to, { recursive: true, filter: (path) => !MADE.has(basename(path)) })
  const entries = await readdir(to, { recursive: true, withFileTypes: true })
  for (const entry of entries.filter((one) => one.isFile())) {
    const path = join(entry.parentPath, entry.name)
    const text = await readFile(path, 'utf8')
    const moved = Object.entries(replaced).reduce((current, [from, into]) => current.replaceAll(from, into), text)
    if (moved !== text) await writeFile(path, moved)
  }
}
