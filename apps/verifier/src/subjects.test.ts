import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { apiBaseUrl, gatewayUrl, rpcUrl } from '../../../packages/verify/test/network.ts'
import {
  createSubjectNetwork,
  judgedAt,
  type Subject,
  samples,
  toFound,
  toSubjectManifest,
  toWanted,
} from '../../../packages/verify/test/subjects.ts'
import { createFolder } from '../test/folder.ts'
import { runCli } from './runCli.ts'

/** In the README's format. */
const EXIT_CODES = {
  accepted: 0,
  failed: 1,
  contradicted: 1,
  'unknown-code': 2,
  mock: 3,
  incomplete: 5,
  late: 6,
  unbounded: 7,
} as const
/** Errors whose exit code isn't bad input or unavailable. */
const OWN_CODES: Readonly<Record<string, number>> = { proof_not_found: 8, car_mismatch: 1 }
const UNAVAILABLE = ['proof_not_pinned', 'fetch_failed', 'chain_unavailable', 'event_not_found']

async function toArguments(row: Subject): Promise<string[]> {
  const { subject, collaterals = [], hasSources = true, hasNode = true, tcbStatuses = [] } = row
  const folder = await createFolder({ 'manifest.json': JSON.stringify(toSubjectManifest(row)) })
  const write = async ({ name, bytes }: { name: string; bytes: Uint8Array }) => {
    await writeFile(join(folder, name), bytes)
    return join(folder, name)
  }
  return [
    'verify',
    '--json',
    ...['--manifest', join(folder, 'manifest.json')],
    ...(await Promise.all(collaterals.map(write))).flatMap((path) => ['--collateral', path]),
    ...(row.revocations === undefined ? [] : ['--revocations', await write(row.revocations)]),
    ...(row.opening === undefined ? [] : ['--opening', await write(row.opening)]),
    ...(hasSources ? ['--ipfs', gatewayUrl, '--api', apiBaseUrl] : []),
    ...(hasNode ? ['--rpc', rpcUrl] : []),
    ...tcbStatuses.flatMap((status) => ['--tcb-status', status]),
    ...(row.allowMock === false ? [] : ['--allow-mock']),
    ...(row.isEventDue === false ? ['--allow-missing-event'] : []),
    ...(row.maximumEventDelayS === undefined ? [] : ['--maximum-event-delay', String(row.maximumEventDelayS)]),
    ...(row.at === undefined ? [] : ['--at', row.at.toISOString()]),
    '--',
    typeof subject === 'string' ? subject : await write(subject),
  ]
}

function readSignature({ opening }: Subject): string | undefined {
  const half = opening && JSON.parse(new TextDecoder().decode(opening.bytes)).signature
  return half?.signature
}

test.each(samples)('the command line returns the table’s verdict for $name', async (row) => {
  const { fetch } = createSubjectNetwork(row)
  const deps = { fetch, timeoutMs: 5_000, now: () => judgedAt, isColored: false }
  const { exitCode, stdout, stderr } = await runCli(deps, await toArguments(row))
  expect(stderr).toBe('')
  // In an opening, the signature is as valuable as a key.
  expect(stdout).not.toContain(readSignature(row) ?? 'no signature')
  const { error, ...outcome } = JSON.parse(stdout)
  const wanted = toWanted(row.expected)
  if ('error' in wanted) {
    expect(error?.code).toBe(wanted.error)
    expect(exitCode).toBe(OWN_CODES[wanted.error] ?? (UNAVAILABLE.includes(wanted.error) ? 5 : 4))
    return
  }
  expect(toFound({ ...outcome, lies: outcome.falseClaims })).toEqual(wanted)
  const isReceipt = !wanted.steps.some((step) => step.startsWith('format fail'))
  expect(exitCode).toBe(isReceipt ? EXIT_CODES[wanted.conclusion] : 4)
})
