import { randomBytes } from 'node:crypto'
import { LogError, toVkey } from '@countersign/log'
import { parseArguments } from '@countersign/service'
import { createKeyFile, readSigners } from './signers.ts'
import { createWitnessFolder } from './witnessFolder.ts'

const USAGE = `usage: npm run witness:key -- --name NAME --dir DIR

Creates the folder of a new witness with its secret keys, and prints the public keys.
  --name NAME   name of the witness, without spaces and plus signs, such as its address without the scheme
  --dir DIR     folder to create, for WITNESS_DIR; must not contain a witness
  --help        prints this help

Example: npm run witness:key -- --name witness.example/w1 --dir .countersign/witness
Exit codes: 0 created, 1 failed, 2 invalid arguments.
`

const parsed = parseArguments(process.argv.slice(2), { name: { type: 'string' }, dir: { type: 'string' } })
if (parsed.kind === 'help') {
  process.stdout.write(USAGE)
} else if (parsed.kind === 'fault') {
  process.stderr.write(`${parsed.fault}\n\n${USAGE}`)
  process.exitCode = 2
} else if (parsed.values.name === undefined || parsed.values.dir === undefined) {
  process.stderr.write(`Missing --name or --dir.\n\n${USAGE}`)
  process.exitCode = 2
} else {
  try {
    const keyFile = createKeyFile(parsed.values.name, (length) => new Uint8Array(randomBytes(length)))
    await createWitnessFolder(parsed.values.dir, keyFile)
    // Public keys, for the operators of logs and for verifiers.
    for (const { key } of readSigners(keyFile)) process.stdout.write(`${toVkey(key)}\n`)
  } catch (error) {
    const details = error instanceof LogError ? error.details : undefined
    process.stderr.write(`${details ?? (error instanceof Error ? error.message : 'unknown')}\n`)
    process.exitCode = 1
  }
}
