#!/usr/bin/env node
import { describeError, toPrintable } from '@countersign/verify'
import { toErrorExitCode } from './exitCodes.ts'
import { runCli } from './runCli.ts'

// A reader such as `head` may close the pipe early.
process.stdout.on('error', () => {})

// Unexpected. Prints one line instead of a stack trace.
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
    ...(process.stderr.isTTY && { writeWait: (text: string) => void process.stderr.write(text) }),
  },
  process.argv.slice(2),
)
process.stderr.write(stderr)
process.exitCode = exitCode
