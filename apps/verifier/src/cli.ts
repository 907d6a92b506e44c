#!/usr/bin/env node
import { describeError, toPrintable } from '@countersign/verify'
import { toErrorExitCode } from './exitCodes.ts'
import { runCli } from './runCli.ts'

// A reader that has seen enough (`| head`) closes the pipe; that is no fault of ours.
process.stdout.on('error', () => {})

// Nothing should get here; if it does, one line rather than a stack trace.
process.on('uncaughtException', (error) => {
  process.stderr.write(`countersign-verifier: ${toPrintable(describeError(error).message)} [internal]\n`)
  process.exit(toErrorExitCode(error))
})

const { exitCode, stderr } = await runCli(
  {
    fetch: globalThis.fetch,
    timeoutMs: 10_000,
    now: () => new Date(),
    isColored: process.stdout.isTTY === true && !process.env.NO_COLOR,
    writeOut: (text) => void process.stdout.write(text),
  },
  process.argv.slice(2),
)
process.stderr.write(stderr)
process.exitCode = exitCode
