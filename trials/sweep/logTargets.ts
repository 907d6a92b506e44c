import { developmentSeed } from '@countersign/attestation/simulator'
import { hashLeaf, toCanonicalJson, toHex } from '@countersign/protocol'
import { createReceiptSimulator, createSimulatedLog, type SimulatedAttestation } from '@countersign/receipt/simulator'
import { parseGolden } from '../../packages/receipt/spec/createSpecFiles.ts'
import { createLogTamperings, goldenLog } from '../../packages/receipt/spec/tamperedLog.ts'
import { tamperV2 } from '../../packages/receipt/spec/tamperedV2.ts'
import { createBlockTargets, createIssueTargets } from './receiptTargets.ts'
import type { Mutation, Target } from './sweep.ts'

/** A logged receipt: its proof with every arrangement of lines, and the blocks that name the log. */
export async function createLogTargets(signedAt: Date): Promise<Target[]> {
  const service = createReceiptSimulator()
  const name = 'receipt v2 log'
  const options = { signedAt, treeSize: 3, leafIndex: 1, log: goldenLog }
  const issue = await service.issueV2(options)
  const other = await service.issueV2({ ...options, batchSequence: 1 })
  const arranged = arrangeLines(issue)
  const genuine = new Set(arranged.filter(({ isEnough }) => isEnough).map(({ bytes }) => toText(bytes)))
  const tampered = createLogTamperings(parseGolden(issue)).map(({ name: label, ...tampering }) => {
    const { bytes, blocks } = tamperV2(parseGolden(issue), tampering)
    return { label, block: tampering.block, bytes, blocks }
  })
  const inReceipt = tampered.filter(({ block }) => block === 'attestation')
  const inBatch = tampered.filter(({ block }) => block === 'batch')
  const swapped = toCanonicalJson({ ...issue.receipt, log: other.receipt.log })
  return [
    ...createIssueTargets({ name, service, issue }).map((target) => ({
      ...target,
      byHand: [...inReceipt, ...arranged, { label: 'the proof of another receipt', bytes: swapped }],
      isFree: (bytes: Uint8Array) => genuine.has(toText(bytes)),
    })),
    ...createBlockTargets({ name, service, issue, other }, ['release', 'batch']).map((target) => ({
      ...target,
      byHand: target.name.includes('batch')
        ? inBatch.map(({ label, blocks }) => ({ label, bytes: blocks.batch }))
        : (target.byHand ?? []),
    })),
  ]
}

/** A signature line of the log, a witness (by its place in the settings) or an unknown key. */
type Line = { text: string; place: 'log' | 'unknown' | number }

/**
 * Up to three signature lines in every order, with omissions and repetitions, each also below the log's line. Only the log's line followed by
 * at least two witnesses in the order of the settings is accepted.
 */
function arrangeLines({ receipt }: SimulatedAttestation): (Mutation & { isEnough: boolean })[] {
  const { log = '' } = receipt
  const { statement } = receipt.signer
  const leaf = toHex(hashLeaf(statement))
  const entry = { kind: 'signature', keyId: statement.keyId, leaf, timeMs: Date.parse(statement.signedAt) } as const
  const readLines = (seed: string) =>
    createSimulatedLog(seed, { ...goldenLog, cosigners: [0, 1, 2] })
      .prove(entry)
      .split('\n')
      .filter((line) => line.startsWith('— '))
  const [own = '', ...witnesses] = readLines(developmentSeed)
  const first: Line = { text: own, place: 'log' }
  const lines: Line[] = [
    first,
    ...witnesses.map((text, place): Line => ({ text, place })),
    { text: readLines('another service')[1] ?? '', place: 'unknown' },
  ]
  const start = log.slice(0, log.indexOf('— '))
  const arrangements = [...choose(lines, 3)].flatMap((chosen) => [chosen, [first, ...chosen]])
  return arrangements.map((chosen) => ({
    label: `lines: ${chosen.map(({ place }) => place).join(', ') || 'none'}`,
    bytes: toCanonicalJson({ ...receipt, log: start + chosen.map(({ text }) => `${text}\n`).join('') }),
    isEnough: isEnough(chosen.map(({ place }) => place)),
  }))
}

function isEnough([first, ...rest]: Line['place'][]): boolean {
  const witnesses = rest.filter((place) => typeof place === 'number')
  const isOrdered = witnesses.every((place, index) => (witnesses[index - 1] ?? -1) < place)
  return first === 'log' && rest.length >= 2 && witnesses.length === rest.length && isOrdered
}

function* choose(lines: readonly Line[], most: number): Generator<Line[]> {
  yield []
  if (most === 0) return
  for (const line of lines) for (const rest of choose(lines, most - 1)) yield [line, ...rest]
}

const toText = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')
