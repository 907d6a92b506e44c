import {
  chmodSync,
  copyFileSync,
  existsSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { Source } from './listSources.ts'
import { MeasureError } from './MeasureError.ts'

/** The time of every file, whenever it was checked out or installed. */
const TIME = 0

/** Lays an image out in a new folder, with the same modes and times wherever and whenever it is done. */
export function stageTree(folder: string, sources: readonly Source[]) {
  if (existsSync(folder) && readdirSync(folder).length > 0) throw new MeasureError([`${folder} is not empty`])
  const folders = new Set<string>()
  for (const source of sources) {
    const path = join(folder, source.path)
    for (let parent = dirname(source.path); parent !== '.'; parent = dirname(parent)) folders.add(join(folder, parent))
    mkdirSync(dirname(path), { recursive: true })
    if ('link' in source) symlinkSync(source.link, path)
    else {
      if ('content' in source) writeFileSync(path, source.content)
      else copyFileSync(source.from, path)
      // Not as an option of the writing: the umask would have its say.
      chmodSync(path, source.isExecutable ? 0o755 : 0o644)
    }
    lutimesSync(path, TIME, TIME)
  }
  // Last, since writing into a folder changes its time.
  for (const path of [...folders, folder]) {
    chmodSync(path, 0o755)
    lutimesSync(path, TIME, TIME)
  }
}
