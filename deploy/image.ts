import { join } from 'node:path'
import { readArguments, refuseArguments } from '../scripts/readArguments.ts'
import { createImage } from './image/createImage.ts'
import { INPUTS } from './image/listInputs.ts'
import { type ImageName, imageNames } from './measure/images.ts'
import { reportFaults } from './measure/reportFaults.ts'

const USAGE = `usage: npm run image -- NAME [options]

Writes an OCI image without a container engine or a network. Its bytes depend only on this checkout and the inputs.

  NAME             ${imageNames.join(', ')}
  --inputs FOLDER  Node and the Debian packages, from npm run image:fetch (default: ${INPUTS})
  --out PATH       a tar archive if the name ends with .tar, otherwise a new or empty folder (default: .countersign/images/NAME.tar)
  --help           show this help

Prints the image's digest, and the hash of its list of files, as npm run measure does.

Example: npm run image -- enclave
Exit codes: 0 written, 2 wrong arguments or missing files.`

const { values, positionals } = readArguments({ inputs: { type: 'string' }, out: { type: 'string' } }, USAGE, {
  takesPositionals: true,
})
const [name = ''] = positionals
if (positionals.length !== 1 || !imageNames.includes(name as ImageName)) {
  refuseArguments(`expected one of ${imageNames.join(', ')}, got ${positionals.join(' ') || 'nothing'}`, USAGE)
}
const { inputs = INPUTS, out = join('.countersign/images', `${name}.tar`) } = values
await reportFaults(async () => {
  const image = await createImage({ root: join(import.meta.dirname, '..'), name: name as ImageName, inputs })
  image.writeTo(out)
  process.stdout.write(`${image.digest}  image ${name}, in ${out}\n${image.filesHash}  its files\n`)
})
