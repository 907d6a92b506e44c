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

/** The same time for every file, whenever it was checked out or installed. */
const TIME = 0

/** Writes an image's files to a new folder with reproducible modes and times. */
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
      // A mode set when writing would depend on the umask.
      chmodSync(path, source.isExecutable ? 0o755 : 0o644)
    }
    lutimesSync(path, TIME, TIME)
  }
  // Comes last, because writing into a folder changes its time.
  for (const path of [...folders, folder]) {
    chmodSync(path, 0o755)
    lutimesSync(path, TIME, TIME)
  }
}
