import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Source } from '../measure/listSources.ts'
import { InputError } from './InputError.ts'
import { type Input, isIntact, listInputs } from './listInputs.ts'
import { readDeb } from './readDeb.ts'
import { readTar } from './readTar.ts'

/** Reads Node and its libraries from the folder that `npm run image:fetch` fills. */
export async function readInputs(root: string, folder: string): Promise<Source[]> {
  const sources = await Promise.all(listInputs(root).map((input) => readInput(input, folder)))
  return sources.flat()
}

async function readInput(input: Input, folder: string): Promise<Source[]> {
  const { file, files } = input
  const path = join(folder, file)
  const how = `get it with: npm run image:fetch -- ${folder}`
  if (!existsSync(path)) throw new InputError('input_missing', file, `not found in ${folder}; ${how}`)
  const content = readFileSync(path)
  if (!isIntact(input, content)) {
    throw new InputError('input_changed', file, `expected ${input.integrity}; ${how}`)
  }
  let archive: Map<string, Uint8Array>
  try {
    archive = readTar(file.endsWith('.deb') ? await readDeb(content) : gunzipSync(content))
  } catch (cause) {
    throw new InputError('input_malformed', file, (cause as Error).message)
  }
  return Object.entries(files).map(([target, from]) => {
    const found = archive.get(from)
    if (found === undefined) throw new InputError('input_malformed', file, `has no file ${from}`)
    return { path: target, content: found, isExecutable: true }
  })
}
