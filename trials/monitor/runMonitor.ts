import { execFile } from 'node:child_process'
import { toPath } from '@countersign/testing/launcher'

const MONITOR = toPath('apps/verifier/src/monitor/cli.ts')

/** The monitor's command line, as a separate process. */
export function runMonitor(argv: readonly string[]): Promise<{ exitCode: number; stdout: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, ['-C', 'source', MONITOR, ...argv], (_, stdout) => {
      resolve({ exitCode: child.exitCode ?? -1, stdout })
    })
  })
}

/** What it says of its first wallet, to a webhook or with `--json`. */
export function readLook(text: string): { exitCode: number; conclusion: string; kinds: string[] } {
  const { exitCode, looks } = JSON.parse(text) as {
    exitCode: number
    looks: { report: { conclusion: string; findings: { kind: string }[] } }[]
  }
  const [{ report }] = looks as [(typeof looks)[number]]
  return { exitCode, conclusion: report.conclusion, kinds: report.findings.map(({ kind }) => kind).toSorted() }
}
