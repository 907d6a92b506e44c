import { readdirSync } from 'node:fs'
import { join } from 'node:path'

export type TreeEntry = { path: string; kind: 'file' | 'folder' | 'link' | 'other' }

/** Lists everything below a folder. Node's recursion would follow links to folders. */
export function listTree(folder: string): TreeEntry[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((found): TreeEntry[] => {
    const path = found.name
    if (found.isSymbolicLink()) return [{ path, kind: 'link' }]
    if (!found.isDirectory()) return [{ path, kind: found.isFile() ? 'file' : 'other' }]
    const below = listTree(join(folder, path)).map((entry) => ({ ...entry, path: join(path, entry.path) }))
    return [{ path, kind: 'folder' }, ...below]
  })
}
