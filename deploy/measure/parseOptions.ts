import { parseArguments } from '@countersign/service'
import { type Architecture, architectures, type ImageName, imageNames } from './images.ts'
import { MeasureError } from './MeasureError.ts'

export const help = `usage: npm run measure -- [options]

Says which files run in an image, and their hash.

  --image NAME     ${imageNames.join(', ')} (default: enclave)
  --arch ARCH      ${architectures.join(' or ')}: the guests that images are for have no other
  --libraries      with the shared libraries that Node is linked with, as this machine has them
  --json           prints the whole manifest rather than its hash
  --out FILE       writes the manifest to a file
  --check FILE     compares with an earlier manifest; prints what differs, and ends with 1
  --stage DIR      lays the image out in a new or empty folder
  --tree DIR       takes a folder that is laid out already, such as an unpacked image, instead of this checkout
  --help           this text

The hash is the SHA-256 of one line for each file, sorted by path: MODE SHA256 BYTES PATH, or link TARGET PATH.

Example: npm run measure -- --image coordinator --out coordinator.json
Exit codes: 0 done, 1 differs from --check, 2 wrong arguments or missing files.
`

export type Options = {
  image: ImageName
  arch: Architecture
  withLibraries: boolean
  isJson: boolean
  out: string | undefined
  check: string | undefined
  stage: string | undefined
  tree: string | undefined
}

const OPTIONS = {
  image: { type: 'string' },
  arch: { type: 'string' },
  libraries: { type: 'boolean' },
  json: { type: 'boolean' },
  out: { type: 'string' },
  check: { type: 'string' },
  stage: { type: 'string' },
  tree: { type: 'string' },
} as const

/** `help` where that is what was asked for. */
export function parseOptions(args: readonly string[], { arch: ownArch }: { arch: string }): Options | 'help' {
  const parsed = parseArguments(args, OPTIONS)
  if (parsed.kind === 'help') return 'help'
  if (parsed.kind === 'fault') throw new MeasureError([parsed.fault])
  const { values } = parsed
  const { image = 'enclave', arch = 'x64', libraries, json, out, check, stage, tree } = values
  const faults: string[] = []
  if (!imageNames.includes(image as ImageName)) faults.push(`--image: expected ${imageNames.join(', ')}`)
  if (!architectures.includes(arch as Architecture)) faults.push(`--arch: expected ${architectures.join(' or ')}`)
  if (libraries && arch !== ownArch) faults.push('--libraries: those of another architecture are not here')
  if (tree !== undefined && (stage !== undefined || libraries))
    faults.push('--tree: goes with neither --stage nor --libraries')
  for (const [name, value] of Object.entries({ out, check, stage, tree })) {
    if (value === '') faults.push(`--${name}: missing`)
  }
  if (faults.length > 0) throw new MeasureError(faults)
  return {
    image: image as ImageName,
    arch: arch as Architecture,
    withLibraries: libraries ?? false,
    isJson: json ?? false,
    out,
    check,
    stage,
    tree,
  }
}
