import {
  arrangeCheckpoint,
  assertLogged,
  assertWitnessPolicy,
  type Cosignature,
  formatTlogProof,
  hashLogEntry,
  isSatisfied,
  parseNote,
  parseTlogProof,
  parseVkey,
  type WitnessPolicy,
} from '@countersign/log'
import { type AttestationReceiptV2, type BatchBlock, hashLeaf, toHex } from '@countersign/protocol'
import { toTime } from '../check/checkWitness.ts'
import { failIf, NOT_IN_MANIFEST, needs, StepFailure, StepSkip, type Transcript } from '../check/steps.ts'

/** The position of a signature's entry in a log, and its cosigners. */
export type LogInclusion = {
  origin: string
  /** The index, from 0. */
  index: number
  /** The size of the cosigned tree. */
  size: number
  /** The cosigning witnesses in the order of the settings: Ed25519 keys in hex. */
  cosigners: readonly string[]
  /** When each of them cosigned, in seconds by its own clock. */
  timesS: readonly number[]
  /** The number of witnesses in the settings, and the quorum. */
  witnesses: number
  quorum: number
  /** When a quorum had cosigned, by the witnesses' clocks. ISO 8601. */
  cosignedAt: string
}

/** The limit of a receipt without a log. */
const NOTHING_PROVED = 'nothing proves that there are no other signatures'

/**
 * log: the signature's entry is in a log that the settings name, and it has the cosignatures of a quorum of the settings and of each policy
 * of
 * the reader. Without such a policy, the settings, which the quote covers, decide whether there must be a log.
 */
export async function checkLog(
  { run }: Transcript,
  receipt: AttestationReceiptV2,
  { batch, policies }: { batch: BatchBlock | undefined; policies: readonly WitnessPolicy[] },
): Promise<LogInclusion | undefined> {
  return run('log', () => {
    const { settings, logKey } = needs(batch, 'the batch with the log’s settings is missing')
    const { log } = receipt
    if (settings.log === null) {
      failIf(logKey !== undefined || log !== undefined, 'The receipt names a log, but the enclave’s settings do not.')
      throw withoutLog('This enclave keeps no log', policies)
    }
    if (logKey === undefined || log === undefined) {
      throw new StepFailure('The enclave’s settings name a log, but the receipt does not prove that it is in one.')
    }
    const key = parseVkey(logKey)
    failIf(!settings.log.origins.includes(key.name), `The enclave’s settings do not name the log ${key.name}.`)
    failIf(key.type !== 'ed25519', 'The key of the log has the wrong type.')
    const found = assertLogged(log, { leaf: hashEntry(receipt), log: key, policy: settings.log })
    const { checkpoint, cosignatures, index } = found
    failIf(checkpoint.extensions.length > 0, 'The checkpoint has more lines than origin, size and root.')
    failIf(log !== toOneForm(log, found), 'The proof has other lines than the log’s and its witnesses’.')

    const cosigners = cosignatures.map(({ witness }) => witness)
    for (const policy of policies) {
      assertWitnessPolicy(policy)
      const own = cosigners.filter((witness) => policy.witnesses.includes(witness))
      failIf(
        !isSatisfied(policy, own),
        `${own.length} of the anchors’ witnesses cosigned, but ${policy.quorum} are needed.`,
        NOT_IN_MANIFEST,
      )
    }
    const timesS = cosignatures.map(({ timestampS }) => timestampS)
    const cosignedAt = findTime(cosignatures, [settings.log, ...policies])
    const { origin, size } = checkpoint
    const { witnesses, quorum } = settings.log
    const logged = { origin, index, size, cosigners, timesS, witnesses: witnesses.length, quorum, cosignedAt }
    return [describe(logged), logged]
  })
}

/** Receipts of version 1 are in no log. */
export async function skipLog({ run }: Transcript, policies: readonly WitnessPolicy[]): Promise<void> {
  await run('log', () => {
    throw withoutLog('A receipt of version 1 is in no log', policies)
  })
}

/** A reader who names witnesses requires a log, even if the enclave's settings have none. */
function withoutLog(why: string, policies: readonly WitnessPolicy[]): StepSkip | StepFailure {
  if (policies.length === 0) return new StepSkip(`${why}: ${NOTHING_PROVED}.`)
  return new StepFailure(`${why}, and you require witnesses: ${NOTHING_PROVED}.`, NOT_IN_MANIFEST)
}

/** The leaf of the signature's log entry. */
export function hashEntry({ signer: { statement } }: AttestationReceiptV2): Uint8Array {
  const timeMs = toTime(statement.signedAt, 'The time of signing')
  return hashLogEntry({ kind: 'signature', keyId: statement.keyId, leaf: toHex(hashLeaf(statement)), timeMs })
}

/** The canonical form of a proof, without extra data and lines. Otherwise one receipt could exist in several valid forms. */
function toOneForm(text: string, found: Parameters<typeof arrangeCheckpoint>[1]): string {
  const { index, proof, checkpoint } = parseTlogProof(text)
  return formatTlogProof({ index, proof, checkpoint: arrangeCheckpoint(parseNote(checkpoint).text, found) })
}

/** The earliest time at which each policy had its quorum. Limited to valid dates, because a witness can sign any number. */
function findTime(cosignatures: readonly Cosignature[], policies: readonly WitnessPolicy[]): string {
  const ordered = cosignatures.toSorted((left, right) => left.timestampS - right.timestampS)
  const witnesses = ordered.map(({ witness }) => witness)
  const last = ordered.find((_, index) =>
    policies.every((policy) => isSatisfied(policy, witnesses.slice(0, index + 1))),
  )
  return new Date(Math.min((last?.timestampS ?? Number.POSITIVE_INFINITY) * 1000, MAX_DATE_MS)).toISOString()
}

const MAX_DATE_MS = 8.64e15

function describe({ origin, index, size, cosigners, witnesses, quorum, cosignedAt }: LogInclusion): string {
  const who = `${cosigners.length} of ${witnesses} witnesses cosigned, and ${quorum} are enough`
  return `Entry ${index} of the log ${origin}, in a tree of ${size}. ${who}. They had a quorum by ${cosignedAt}, according to their own clocks.`
}
