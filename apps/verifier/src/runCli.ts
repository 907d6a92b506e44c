import {
  describeError,
  describePhase,
  type FetchDeps,
  type Progress,
  type ReaderNeed,
  toPrintable,
  toPrintableJson,
  VerifierError,
} from '@countersign/verify'
import manifest from '../package.json' with { type: 'json' }
import { exitCodes, toErrorExitCode } from './exitCodes.ts'
import { explain } from './explain.ts'
import { HELP } from './help.ts'
import { parseOptions } from './parseOptions.ts'
import { createStepPrinter, printVerdict, printVerdictJson } from './printVerdict.ts'
import { verify } from './verify.ts'

export type CliDeps = FetchDeps & {
  now: () => Date
  isColored: boolean
  /** Receives parts of `stdout` as soon as they are ready. */
  writeOut?: (text: string) => void
  /** Receives what a person at a terminal waits for, such as a slow gateway. */
  writeWait?: (text: string) => void
}

export type CliResult = { exitCode: number; stdout: string; stderr: string }

/** Runs the whole program except for its process. Never throws. */
export async function runCli({ writeOut = () => {}, ...deps }: CliDeps, argv: readonly string[]): Promise<CliResult> {
  let steps = ''
  const onText = (text: string) => {
    steps += text
    writeOut(text)
  }
  const { exitCode, stdout, stderr } = await run({ ...deps, onText }, argv)
  writeOut(stdout)
  return { exitCode, stdout: steps + stdout, stderr }
}

/** Passes each finished step to `onText`. The result contains the rest. */
async function run(
  { onText, ...deps }: Omit<CliDeps, 'writeOut'> & { onText: (text: string) => void },
  argv: readonly string[],
): Promise<CliResult> {
  const isJson = argv.includes('--json')
  try {
    const options = parseOptions(deps, argv)
    switch (options.command) {
      case 'help':
        return succeed(HELP)
      case 'misplaced-help':
        return refuseHelp({ isJson })
      case 'version':
        return succeed(`${manifest.version}\n`)
      case 'explain':
        return succeed(await explain(options.file))
      case 'verify': {
        const printStep = createStepPrinter(deps)
        const onProgress = (progress: Progress) => {
          if (progress.kind === 'phase') deps.writeWait?.(`${describePhase(progress.phase)}\n`)
          else if (!isJson) onText(printStep(progress.step))
        }
        const outcome = await verify({ ...deps, onProgress }, options)
        const { exitCode, problems, unwritten = [] } = outcome
        if (isJson) return { exitCode, stdout: printVerdictJson(outcome), stderr: '' }
        const lines = problems.map((problem) => `could not fetch: ${problem}`).concat(unwritten)
        return { exitCode, stdout: printVerdict(outcome, deps), stderr: lines.map(toLine).join('') }
      }
    }
  } catch (error) {
    return fail(error, { isJson })
  }
}

function succeed(stdout: string): CliResult {
  return { exitCode: exitCodes.verified, stdout, stderr: '' }
}

/** Help is useful to people, but an error for scripts. */
function refuseHelp({ isJson }: { isJson: boolean }): CliResult {
  const error = new VerifierError('invalid_arguments', 'nothing was verified', {
    details: 'use --help and --version without other arguments',
  })
  const refused = fail(error, { isJson })
  return isJson ? refused : { ...refused, stdout: HELP }
}

function fail(error: unknown, { isJson }: { isJson: boolean }): CliResult {
  const { code, message: words } = describeError(error)
  const need = error instanceof VerifierError ? error.need : undefined
  const message = need === undefined ? words : `${words} (${flagHints[need]})`
  const exitCode = toErrorExitCode(error)
  if (isJson) return { exitCode, stdout: `${toPrintableJson({ error: { code, message } })}\n`, stderr: '' }
  return { exitCode, stdout: '', stderr: toLine(`${message} [${code}]`) }
}

function toLine(text: string): string {
  return `countersign-verifier: ${toPrintable(text)}\n`
}

/** The options that fix an error. The errors name none, because the page shows them too. */
const flagHints: Readonly<Record<ReaderNeed, string>> = {
  contract: '--contract, or a --manifest that names it on this chain',
  service: 'if it has another address, name the service with --api',
  node: 'this needs --rpc and --contract',
  gateway: '--ipfs or --api',
  time: '--at',
  'collateral-of-time': '--at needs it in --collateral',
  'one-collateral': '--at takes one --collateral of that time',
}
