import { expect } from 'vitest'
import { runCli } from '../src/runCli.ts'
import { honest, toFlags } from './folder.ts'

export const deps = { fetch, timeoutMs: 5_000, now: () => new Date('2028-03-01T12:00:00Z'), isColored: false }
export const accept = ['--allow-mock', ...toFlags(honest)]
export const collateralCid = honest.receipt.signer.collateral
export const blocks = { [honest.cid]: honest.bytes, [collateralCid]: honest.collateral }
export const { txHash } = honest.receipt.transaction

export const run = (...argv: string[]) => runCli(deps, argv)

export async function runJson(...argv: string[]) {
  const { exitCode, stdout, stderr } = await run(...argv, '--json')
  expect(stderr).toBe('')
  return { exitCode, ...JSON.parse(stdout) }
}

export const statusOf = (steps: readonly { id: string; status: string }[], id: string) =>
  steps.find((step) => step.id === id)?.status
