import { randomBytes } from 'node:crypto'
import { LogError, toVkey } from '@countersign/log'
import { parseArguments } from '@countersign/service'
import { createKeyFile, readSigners } from './signers.ts'
import { createWitnessFolder } from './witnessFolder.ts'

const USAGE = `usage: npm run witness:key -- --name NAME --dir DIR

Makes the folder of a new witness, with its secret keys, and prints the public keys for those who trust it.
  --name NAME   who the witness is, without spaces and plus signs; best an address of yours without the scheme
  --dir DIR     the folder to make, for WITNESS_DIR; there must be no witness in it yet
  --help        says this

Example: npm run witness:key -- --name witness.example/w1 --dir .countersign/witness
Exit codes: 0 made, 1 could not be made, 2 wrong arguments.
`

const parsed = parseArguments(process.argv.slice(2), { name: { type: 'string' }, dir: { type: 'string' } })
if (parsed.kind === 'help') {
  process.stdout.write(USAGE)
} else if (parsed.kind === 'fault') {
  process.stderr.write(`${parsed.fault}\n\n${USAGE}`)
  process.exitCode = 2
} else if (parsed.values.name === undefined || parsed.values.dir === undefined) {
  process.stderr.write(`--name and --dir are needed.\n\n${USAGE}`)
  process.exitCode = 2
} else {
  try {
    const keyFile = createKeyFile(parsed.values.name, (length) => new Uint8Array(randomBytes(length)))
    await createWitnessFolder(parsed.values.dir, keyFile)
    // Public: whoever trusts this witness takes one of them.
    for (const { key } of readSigners(keyFile)) process.stdout.write(`${toVkey(key)}\n`)
  } catch (error) {
    const details = error instanceof LogError ? error.details : undefined
    process.stderr.write(`${details ?? (error instanceof Error ? error.message : 'unknown')}\n`)
    process.exitCode = 1
  }
}
