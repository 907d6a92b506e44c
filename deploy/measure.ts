import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createImageLauncher } from './launcher/launchers.ts'
import { findNode } from './measure/findNode.ts'
import { images } from './measure/images.ts'
import { listSources, type Source } from './measure/listSources.ts'
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
import { stageTree } from './measure/stageTree.ts'

const root = join(import.meta.dirname, '..')

/** The shared libraries of this process: on Linux, Node's libraries and the loader. */
function findLibraries(nodePath: string): string[] {
  if (process.execPath !== nodePath) {
    throw new MeasureError([`--libraries: must run with the image's Node: ${nodePath} -C source deploy/measure.ts`])
  }
  const { sharedObjects } = process.report.getReport() as unknown as { sharedObjects: string[] }
  return sharedObjects.filter((path) => path.startsWith('/') && path !== nodePath)
}

function collect(options: Options): Source[] {
  const { image, arch } = options
  const nodePath = findNode(root, arch)
  const libraries = options.withLibraries ? { libraries: findLibraries(nodePath) } : {}
  return listSources({ root, image: images[image], arch, nodePath, launcher: createImageLauncher(image), ...libraries })
}

function readExpected(path: string): Manifest {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    throw new MeasureError([`--check: failed to read ${path}`])
  }
  return parseManifest(text)
}

function run(options: Options) {
  const expected = options.check === undefined ? undefined : readExpected(options.check)
  let manifest: Manifest
  if (options.tree === undefined) {
    const sources = collect(options)
    manifest = createManifest(options, sources)
    if (options.stage !== undefined) stageTree(options.stage, sources)
  } else {
    if (!existsSync(options.tree)) throw new MeasureError([`--tree: ${options.tree} not found`])
    manifest = toManifest(options, readTree(options.tree))
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

try {
  const options = parseOptions(process.argv.slice(2), { arch: process.arch })
  if (options === 'help') process.stdout.write(help)
  else run(options)
} catch (error) {
  if (!(error instanceof MeasureError)) throw error
  for (const fault of error.faults) process.stderr.write(`${fault}\n`)
  process.exitCode = 2
}
