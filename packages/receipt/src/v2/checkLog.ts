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

/** Where the entry of a signature is in a log, and who cosigned it. */
export type Logged = {
  origin: string
  /** From 0. */
  index: number
  /** Of the tree that was cosigned. */
  size: number
  /** The witnesses of the settings that cosigned it, in their order: Ed25519 keys in hex. */
  cosigners: readonly string[]
  /** How many the settings name, and how many of them are enough. */
  witnesses: number
  quorum: number
  /** When a quorum had cosigned, by the clocks of the witnesses. ISO 8601. */
  cosignedAt: string
}

/** What a receipt that is in no log leaves open. */
const NOTHING_PROVED = 'nothing proves that there are no other signatures'

/**
 * log: the signature's entry is in the log that the settings name, and a quorum of their witnesses cosigned it, and of the witnesses of
 * each policy of the reader. Without such a policy, the settings decide whether there must be a log; the quote covers them.
 */
export async function checkLog(
  { run }: Transcript,
  receipt: AttestationReceiptV2,
  { batch, policies }: { batch: BatchBlock | undefined; policies: readonly WitnessPolicy[] },
): Promise<Logged | undefined> {
  return run('log', () => {
    const { settings, logKey } = needs(batch, 'the batch is missing, which says whether there is a log')
    const { log } = receipt
    if (settings.log === null) {
      failIf(logKey !== undefined || log !== undefined, 'The receipt names a log, and the enclave’s settings do not.')
      throw withoutLog('This enclave keeps no log', policies)
    }
    if (logKey === undefined || log === undefined) {
      throw new StepFailure('The enclave’s settings name a log, and the receipt does not prove that it is in one.')
    }
    const key = parseVkey(logKey)
    failIf(!settings.log.origins.includes(key.name), `The enclave’s settings do not name the log ${key.name}.`)
    failIf(key.type !== 'ed25519', 'The key of the log is of another kind than a log has.')
    const found = assertLogged(log, { leaf: hashEntry(receipt), log: key, policy: settings.log })
    const { checkpoint, cosignatures, index } = found
    failIf(checkpoint.extensions.length > 0, 'The checkpoint has lines beside origin, size and root.')
    failIf(log !== toOneForm(log, found), 'The proof has other lines than the log’s and those of its witnesses.')

    const cosigners = cosignatures.map(({ witness }) => witness)
    for (const policy of policies) {
      assertWitnessPolicy(policy)
      const own = cosigners.filter((witness) => policy.witnesses.includes(witness))
      failIf(
        !isSatisfied(policy, own),
        `${own.length} of the anchors’ witnesses cosigned, and ${policy.quorum} are needed.`,
        NOT_IN_MANIFEST,
      )
    }
    const cosignedAt = findTime(cosignatures, [settings.log, ...policies])
    const { origin, size } = checkpoint
    const { witnesses, quorum } = settings.log
    const logged = { origin, index, size, cosigners, witnesses: witnesses.length, quorum, cosignedAt }
    return [describe(logged), logged]
  })
}

/** A receipt of version 1 is in no log. */
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

function hashEntry({ signer: { statement } }: AttestationReceiptV2): Uint8Array {
  const timeMs = toTime(statement.signedAt, 'The time of signing')
  return hashLogEntry({ kind: 'signature', keyId: statement.keyId, leaf: toHex(hashLeaf(statement)), timeMs })
}

/** What is said again, with no extra data and no other line, has one form: of two that hold alike nobody could tell which was issued. */
function toOneForm(text: string, found: Parameters<typeof arrangeCheckpoint>[1]): string {
  const { index, proof, checkpoint } = parseTlogProof(text)
  return formatTlogProof({ index, proof, checkpoint: arrangeCheckpoint(parseNote(checkpoint).text, found) })
}

/** The earliest time at which each of these policies had its quorum. A witness can sign any time, such as one that no date has. */
function findTime(cosignatures: readonly Cosignature[], policies: readonly WitnessPolicy[]): string {
  const ordered = cosignatures.toSorted((left, right) => left.timestampS - right.timestampS)
  const witnesses = ordered.map(({ witness }) => witness)
  const last = ordered.find((_, index) =>
    policies.every((policy) => isSatisfied(policy, witnesses.slice(0, index + 1))),
  )
  return new Date(Math.min((last?.timestampS ?? Number.POSITIVE_INFINITY) * 1000, MAX_DATE_MS)).toISOString()
}

const MAX_DATE_MS = 8.64e15

function describe({ origin, index, size, cosigners, witnesses, quorum, cosignedAt }: Logged): string {
  const who = `Of ${witnesses} witnesses ${cosigners.length} cosigned, and ${quorum} are enough`
  return `Entry ${index} of the log ${origin}, in a tree of ${size}. ${who}: so many had by ${cosignedAt}, by their own clocks.`
}
