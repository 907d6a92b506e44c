import { parseArgs } from 'node:util'
import { benchAttestation } from './attestation.ts'
import { benchEnclave } from './enclave.ts'
import { benchPipeline } from './pipeline.ts'
import { benchRestart } from './restart.ts'
import { benchSign } from './sign.ts'
import { benchSignIn } from './signIn.ts'

const suites = {
  attestation: benchAttestation,
  enclave: benchEnclave,
  pipeline: benchPipeline,
  restart: benchRestart,
  sign: benchSign,
  signin: benchSignIn,
}

const USAGE = `usage: npm run bench -- SUITE [--fixtures DIR] [--rounds N]

Suites: ${Object.keys(suites).join(', ')}
  --fixtures DIR   evidence to measure on (default ../shared/fixtures; simulated evidence where that is not there)
  --rounds N       rounds in which all candidates take turns; for signin, 23 new users each (default 9)`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    fixtures: { type: 'string', default: '../shared/fixtures' },
    rounds: { type: 'string', default: '9' },
    help: { type: 'boolean' },
  },
})
const suite = Object.entries(suites).find(([name]) => name === positionals[0])?.[1]
const rounds = Number(values.rounds)

if (values.help === true) {
  console.log(USAGE)
} else if (suite === undefined || positionals.length > 1 || !Number.isInteger(rounds) || rounds < 1) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  await suite({ fixtures: values.fixtures, rounds })
}
