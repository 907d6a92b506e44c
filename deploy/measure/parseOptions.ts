import { parseArguments } from '@countersign/service'
import { INPUTS } from '../image/listInputs.ts'
import { type ImageName, imageNames } from './images.ts'
import { MeasureError } from './MeasureError.ts'

export const help = `usage: npm run measure -- [options]

Lists the files of an image and computes their hash.

  --image NAME     ${imageNames.join(', ')} (default: enclave)
  --inputs FOLDER  Node and the Debian packages, from npm run image:fetch (default: ${INPUTS})
  --json           print the whole manifest instead of its hash
  --out FILE       write the manifest to a file
  --check FILE     compare with an earlier manifest; print the differences and exit with 1
  --stage DIR      write the image's files to a new or empty folder
  --tree DIR       measure an existing folder, such as an unpacked image, instead of this checkout
  --help           show this help

The hash is the SHA-256 of one line for each file, sorted by path: MODE SHA256 BYTES PATH, or link TARGET PATH.

Example: npm run measure -- --image coordinator --out coordinator.json
Exit codes: 0 done, 1 differs from --check, 2 wrong arguments or missing files.
`

export type Options = {
  image: ImageName
  inputs: string
  isJson: boolean
  out: string | undefined
  check: string | undefined
  stage: string | undefined
  tree: string | undefined
}

const OPTIONS = {
  image: { type: 'string' },
  inputs: { type: 'string' },
  json: { type: 'boolean' },
  out: { type: 'string' },
  check: { type: 'string' },
  stage: { type: 'string' },
  tree: { type: 'string' },
} as const

/** Returns `help` for `--help`. */
export function parseOptions(args: readonly string[]): Options | 'help' {
  const parsed = parseArguments(args, OPTIONS)
  if (parsed.kind === 'help') return 'help'
  if (parsed.kind === 'fault') throw new MeasureError([parsed.fault])
  const { values } = parsed
  const { image = 'enclave', inputs = INPUTS, json, out, check, stage, tree } = values
  const faults: string[] = []
  if (!imageNames.includes(image as ImageName)) faults.push(`--image: expected ${imageNames.join(', ')}`)
  if (tree !== undefined && stage !== undefined) faults.push("--tree: can't be combined with --stage")
  for (const [name, value] of Object.entries({ inputs, out, check, stage, tree })) {
    if (value === '') faults.push(`--${name}: missing value`)
  }
  if (faults.length > 0) throw new MeasureError(faults)
  return {
    image: image as ImageName,
    inputs,
    isJson: json ?? false,
    out,
    check,
    stage,
    tree,
  }
}
