import { spawn } from 'node:child_process'
import { readArguments, refuseArguments } from './readArguments.ts'

const USAGE = `usage: npm run off-chain -- [--messages N]

Signs random messages on a whole backend, and searches database, receipts, blocks, calldata and logs for anything of them.
  --messages N   how many (default 1000)
  --help         says this

Example: npm run off-chain -- --messages 50
Exit codes: 0 nothing found, 1 otherwise, 2 wrong arguments.`

const { values } = readArguments({ messages: { type: 'string', default: '1000' } }, USAGE)
if (!/^[1-9][0-9]{0,5}$/.test(values.messages))
  refuseArguments('--messages: expected a number from 1 to 999999.', USAGE)
const env = { ...process.env, OFF_CHAIN_MESSAGES: values.messages }
const child = spawn('vitest', ['run', 'services/coordinator/src/offChain.test.ts'], { stdio: 'inherit', env })
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    // At a terminal the kernel has already sent Ctrl-C to the child.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
  })
}
child.on('exit', (code) => process.exit(code ?? 1))
child.on('error', (error) => {
  console.error(`vitest: ${error.message}`)
  process.exit(1)
})
