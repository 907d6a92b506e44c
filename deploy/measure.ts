import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { listImage } from './image/listImage.ts'
import { MeasureError } from './measure/MeasureError.ts'
import {
  compareFiles,
  createManifest,
  type Manifest,
  parseManifest,
  readTree,
  toJson,
  toManifest,
} from './measure/manifest.ts'
import { help, type Options, parseOptions } from './measure/parseOptions.ts'
import { reportFaults } from './measure/reportFaults.ts'
import { stageTree } from './measure/stageTree.ts'

const root = join(import.meta.dirname, '..')

function readExpected(path: string): Manifest {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    throw new MeasureError([`--check: failed to read ${path}`])
  }
  return parseManifest(text)
}

async function run(options: Options) {
  const expected = options.check === undefined ? undefined : readExpected(options.check)
  const subject = { image: options.image, arch: 'x64' } as const
  let manifest: Manifest
  if (options.tree === undefined) {
    const { image: name, inputs } = options
    const sources = await listImage({ root, name, inputs })
    manifest = createManifest(subject, sources)
    if (options.stage !== undefined) stageTree(options.stage, sources)
  } else {
    if (!existsSync(options.tree)) throw new MeasureError([`--tree: ${options.tree} not found`])
    manifest = toManifest(subject, readTree(options.tree))
  }
  if (options.out !== undefined) writeFileSync(options.out, toJson(manifest))
  const bytes = manifest.files.reduce((sum, entry) => sum + ('bytes' in entry ? entry.bytes : 0), 0)
  const summary = `${manifest.hash}  ${manifest.image} ${manifest.arch}, ${manifest.files.length} files, ${bytes} bytes\n`
  process.stdout.write(options.isJson ? toJson(manifest) : summary)

  if (expected === undefined) return
  const differences = compareFiles(expected.files, manifest.files)
  if (expected.image !== manifest.image) differences.unshift(`different image: ${expected.image}`)
  if (expected.arch !== manifest.arch) differences.unshift(`different architecture: ${expected.arch}`)
  if (differences.length === 0) return
  process.stderr.write(`${differences.join('\n')}\n`)
  process.exitCode = 1
}

await reportFaults(async () => {
  const options = parseOptions(process.argv.slice(2))
  if (options === 'help') process.stdout.write(help)
  else await run(options)
})
