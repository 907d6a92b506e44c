import { parseVkey, type WitnessPolicy } from '@countersign/log'
import type { Policy } from '@countersign/policy'
import { type AttestationReceiptV2, fromHex, ML_DSA_65_KEY_BYTES, verifyEd25519 } from '@countersign/protocol'
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js'
import type { LoggedEntry } from '../check/checkAnchor.ts'
import { failIf, type Transcript } from '../check/steps.ts'
import { nameSignature, type ReceiptView } from '../receiptView.ts'
import { toBlockRelease } from './assemble.ts'
import { type Blocks, checkBlocks, type GivenBlocks } from './blocks.ts'
import { checkLog, hashEntry, type LogInclusion } from './checkLog.ts'
import { checkSubject } from './checkSubject.ts'
import { checkVault } from './checkVault.ts'

/** The values of a receipt for the steps of both versions, and the last check, of its release. */
export type Reading = {
  view: ReceiptView
  policy: Policy | undefined
  logged: LogInclusion | undefined
  /** Undefined unless the step `log` passed. */
  entry: LoggedEntry | undefined
  checkRelease(): Promise<void>
}

/** blocks → opening → digest → signature → tx-hash → statement → log → vault: the steps before those of both versions. */
export async function readAttestation(
  transcript: Transcript,
  receipt: AttestationReceiptV2,
  {
    blocks: given,
    opening,
    policies,
  }: { blocks: GivenBlocks; opening: Uint8Array | undefined; policies: readonly WitnessPolicy[] },
): Promise<Reading | undefined> {
  const blocks = await checkBlocks(transcript, receipt, given)
  const content = await checkSubject(transcript, receipt, { settings: blocks?.batch.settings, opening })
  const logged = await checkLog(transcript, receipt, { batch: blocks?.batch, policies })
  const policy = await checkVault(transcript, receipt, {
    block: given.policy,
    content,
    isLogKnown: blocks !== undefined,
    logged,
  })
  if (blocks === undefined) return undefined
  const { settings, logKey } = blocks.batch
  const entry =
    logged === undefined || settings.log === null || logKey === undefined
      ? undefined
      : { leaf: hashEntry(receipt), index: logged.index, log: parseVkey(logKey), policy: settings.log }
  const checkRelease = () => checkBothSignatures(transcript, blocks)
  return { view: toView(receipt, blocks), policy, logged, entry, checkRelease }
}

function toView(receipt: AttestationReceiptV2, blocks: Omit<Blocks, 'attestation'>): ReceiptView {
  const { statement, inclusion } = receipt.signer
  const { batch, release, coordinator } = blocks
  const { quoteHex, eventLog, config, settings, bootId, sequence, previous, treeSize } = batch
  const { reportHex, certificates, configHash, fetchedAt, revocations, keys } = coordinator
  return {
    kind: receipt.kind,
    transaction: nameSignature(receipt),
    signer: {
      statement,
      quoteHex,
      eventLog,
      config,
      settings,
      inclusion: { ...inclusion, treeSize },
      batch: { bootId, sequence, previous },
      collateral: release.collateral,
    },
    coordinator: {
      publicKey: keys.ed25519,
      mlDsa65: keys.mlDsa65,
      selfAttestation: { reportHex, certificates, configHash, fetchedAt, ...(revocations && { revocations }) },
    },
    entropy: receipt.entropy,
  }
}

/** The benefit of the second signature, and its limit. */
export const quantumNote =
  'Nobody can forge such a release later, not even with a quantum computer, under keys whose block was on the chain before. The owner of these keys is only proven by hardware signatures, which a quantum computer could forge.'

/** release: both keys of the coordinator signed the batch, its collateral and the coordinator's attestation. */
async function checkBothSignatures({ run }: Transcript, blocks: Omit<Blocks, 'attestation'>): Promise<void> {
  const { release, coordinator } = blocks
  await run('release', () => {
    const message = toBlockRelease(release)
    const [classical, postQuantum] = release.signatures.map(({ value }) => fromHex(value)) as [Uint8Array, Uint8Array]
    const isSigned = verifyEd25519(fromHex(coordinator.keys.ed25519), classical, message)
    failIf(!isSigned, 'The coordinator’s Ed25519 key did not sign this release.')
    const isSignedTwice = verifyMlDsa65(fromHex(coordinator.keys.mlDsa65), postQuantum, message)
    failIf(!isSignedTwice, 'The coordinator’s ML-DSA-65 key did not sign this release.')
    return [`Ed25519 and ML-DSA-65 signed batch, collateral and coordinator. ${quantumNote}`, undefined]
  })
}

/** FIPS 204, pure, with an empty context. Never throws, for any bytes. */
function verifyMlDsa65(publicKey: Uint8Array, signature: Uint8Array, message: Uint8Array): boolean {
  try {
    return publicKey.length === ML_DSA_65_KEY_BYTES && ml_dsa65.verify(signature, message, publicKey)
  } catch {
    return false
  }
}
