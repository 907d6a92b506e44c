import { execFile } from 'node:child_process'
import { toPath } from '@countersign/testing/launcher'

const MONITOR = toPath('apps/verifier/src/monitor/cli.ts')

/** Runs the monitor's command line in a separate process. */
export function runMonitor(argv: readonly string[]): Promise<{ exitCode: number; stdout: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, ['-C', 'source', MONITOR, ...argv], (_, stdout) => {
      resolve({ exitCode: child.exitCode ?? -1, stdout })
    })
  })
}

/** Reads the report on the first wallet, from a webhook or `--json`. */
export function readReport(text: string): { exitCode: number; conclusion: string; kinds: string[] } {
  const { exitCode, looks } = JSON.parse(text) as {
    exitCode: number
    looks: { report: { conclusion: string; findings: { kind: string }[] } }[]
  }
  const [{ report }] = looks as [(typeof looks)[number]]
  return { exitCode, conclusion: report.conclusion, kinds: report.findings.map(({ kind }) => kind).toSorted() }
}
