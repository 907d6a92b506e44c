import { readFileSync } from 'node:fs'
import { DeployError, deployLogWitness, deployServiceAttestations } from './deployContract.ts'
import { DeployInputError, help, parseDeployOptions } from './parseDeployOptions.ts'

try {
  const options = parseDeployOptions(
    { env: process.env, readFile: (path) => readFileSync(path, 'utf8') },
    process.argv.slice(2),
  )
  if (options.command === 'help') process.stdout.write(help)
  else if (options.command === 'deployLogWitness') {
    const { address, blockNumber, chainId, logs } = await deployLogWitness(options)
    // Manifests have addresses in lower case, and the block of the deployment as `fromBlock`.
    const block = options.address === undefined ? `  block    ${blockNumber}\n` : ''
    const list = logs.map(({ origin, id }) => `  log      ${id}  ${origin}\n`).join('')
    process.stdout.write(`LogWitness is on chain ${chainId}\n  address  ${address.toLowerCase()}\n${block}${list}`)
  } else {
    const { address, transactionHash, blockNumber, chainId } = await deployServiceAttestations(options)
    process.stdout.write(
      `ServiceAttestations is on chain ${chainId}\n  address      ${address}\n  transaction  ${transactionHash}\n  block        ${blockNumber}\n`,
    )
  }
} catch (error) {
  if (error instanceof DeployInputError) {
    const lines = error.faults.map((fault) => `deploy: ${fault}\n`)
    process.stderr.write(`${lines.join('')}deploy: see --help\n`)
    process.exitCode = 2
  } else {
    // Texts of other errors are not shown, because they may contain the key.
    process.stderr.write(`deploy: ${error instanceof DeployError ? error.message : 'unexpected failure'}\n`)
    process.exitCode = 1
  }
}
