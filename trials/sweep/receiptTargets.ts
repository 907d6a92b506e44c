import { createVerifier } from '@countersign/attestation'
import { type ReleaseBlock, toCanonicalJson } from '@countersign/protocol'
import { type CheckReceiptOptions, checkReceipt, parseBlock, toCid, toCidHash } from '@countersign/receipt'
import { createReceiptSimulator, type SimulatedSigning } from '@countersign/receipt/simulator'
import { GOLDEN_SIGNED_AT } from '../../packages/receipt/spec/createSpecFiles.ts'
import { goldenVaults } from '../../packages/receipt/test/vaults.ts'
import type { Mutation, Target } from './sweep.ts'

/** Receipts of every kind, with both kinds of sample. The first contains all optional blocks and members. */
const ISSUES: readonly { name: string; signing: SimulatedSigning; isBeacon: boolean }[] = [
  { name: 'message', signing: { kind: 'message' }, isBeacon: false },
  { name: 'typed data', signing: { kind: 'typed-data' }, isBeacon: false },
  { name: 'authorization', signing: { kind: 'authorization' }, isBeacon: false },
  { name: 'transaction', signing: { kind: 'transaction' }, isBeacon: true },
]
const EVENTS = [{ name: 'compose-hash', payload: 'ab'.repeat(32) }]

const BLOCKS = ['release', 'batch', 'coordinator', 'collateral'] as const
type BlockName = (typeof BLOCKS)[number]

/**
 * Every block of a version 2 receipt, changed by itself and with its new CID in the blocks above, so that only signatures detect the change.
 * Shared blocks are swept once, the receipt and its opening for every kind.
 */
export async function createReceiptV2Targets(signedAt: Date): Promise<Target[]> {
  const service = createReceiptSimulator()
  const targets: Target[] = []
  for (const [index, { name, signing, isBeacon }] of ISSUES.entries()) {
    const options = { signedAt, treeSize: 3, leafIndex: 1, signing, isBeacon, events: EVENTS, revocations: {} }
    const issue = await service.issueV2(options)
    targets.push(...createIssueTargets({ name: `receipt v2 ${name}`, service, issue }))
    if (index > 0) continue
    const other = await service.issueV2({ ...options, batchSequence: 1 })
    targets.push(...createBlockTargets({ name: 'receipt v2', service, issue, other }, BLOCKS))
  }
  return targets
}

type Service = ReturnType<typeof createReceiptSimulator>
type Issue = Awaited<ReturnType<Service['issueV2']>>
type NamedIssue = { name: string; service: Service; issue: Issue }

/** The receipt and its opening, if it has one. */
export function createIssueTargets({ name, service, issue }: NamedIssue): Target[] {
  const accept = createAccept(service, issue)
  if (issue.opening === undefined) return [{ name, genuine: issue.bytes, accept: (bytes) => accept({ bytes }) }]
  const opening = new TextEncoder().encode(JSON.stringify(issue.opening))
  return [
    { name, genuine: issue.bytes, accept: (bytes) => accept({ bytes }) },
    {
      name: `${name}, opening`,
      genuine: opening,
      // The opening is a JSON file kept by the user: editors may add trailing whitespace.
      isFree: (bytes) => toText(bytes).replace(/[\t\n\r ]+$/, '') === toText(opening),
      accept: (candidate) => accept({ opening: candidate }),
    },
  ]
}

/** The policy of a vault's receipt, changed by itself and with its new CID in receipt and statement. */
function createPolicyTargets({ name, service, issue }: NamedIssue): Target[] {
  const { receipt, blocks } = issue
  const accept = createAccept(service, issue)
  if (blocks.policy === undefined) return []
  const { policy: genuine } = blocks
  return [
    { name: `${name}, policy`, genuine, accept: (policy) => accept({ policy }) },
    {
      name: `${name}, policy with new CID`,
      genuine,
      accept(policy) {
        const cid = toCid(policy)
        const statement = { ...receipt.signer.statement, policy: toCidHash(cid) }
        const signer = { ...receipt.signer, statement }
        return accept({ policy, bytes: toCanonicalJson({ ...receipt, policy: cid, signer }) })
      },
    },
  ]
}

/** `other` is a receipt of the same service with another quote. */
export function createBlockTargets(
  { name: prefix, service, issue, other }: NamedIssue & { other: Issue },
  names: readonly BlockName[],
): Target[] {
  const { receipt } = issue
  const genuine = { ...issue.blocks, collateral: issue.collateral }
  const release = parseBlock('release', genuine.release)
  const accept = createAccept(service, issue)

  function acceptWithNewCid(name: BlockName, block: Uint8Array) {
    if (name === 'release') {
      return accept({ bytes: toCanonicalJson(withRelease(block)), [name]: block })
    }
    const named = { ...release, [name]: toCid(block) }
    const newRelease = toCanonicalJson(named)
    const attestation = withRelease(newRelease)
    const signer = { ...receipt.signer, batch: named.batch }
    return accept({ bytes: toCanonicalJson({ ...attestation, signer }), release: newRelease, [name]: block })
  }

  function withRelease(block: Uint8Array) {
    return { ...receipt, coordinator: { release: toCid(block) } }
  }

  return names.flatMap((name) => {
    const byHand = name === 'release' ? createReleases(release, parseBlock('release', other.blocks.release)) : []
    return [
      {
        name: `${prefix} ${name}`,
        genuine: genuine[name],
        byHand,
        accept: (candidate: Uint8Array) => accept({ [name]: candidate }),
      },
      {
        name: `${prefix} ${name} with new CID`,
        genuine: genuine[name],
        byHand,
        accept: (candidate: Uint8Array) => acceptWithNewCid(name, candidate),
      },
    ]
  })
}

/** A one-to-one mapping of bytes to text. */
const toText = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')

type Changes = { bytes?: Uint8Array; opening?: Uint8Array } & { [name in BlockName | 'policy']?: Uint8Array }

function createAccept({ roots, mockEntropyKeys }: Service, { bytes, collateral, blocks, anchors }: Issue) {
  const verifier = createVerifier({ roots })
  const check = createReceiptCheck()
  return (changes: Changes) => {
    const { bytes: receipt = bytes, collateral: block = collateral, opening, ...others } = changes
    const options: CheckReceiptOptions = {
      roots,
      anchors,
      mockEntropyKeys,
      verifier,
      blocks: { ...blocks, ...others },
      ...(opening && { opening }),
    }
    return check(receipt, block, options)
  }
}

/** Releases with stripped, swapped, repeated, downgraded or foreign signatures. */
function createReleases(release: ReleaseBlock, other: ReleaseBlock): Mutation[] {
  const [classical, postQuantum] = release.signatures
  const [otherClassical, otherPostQuantum] = other.signatures
  const sets: { [label: string]: unknown } = {
    none: [],
    'not an array': null,
    'only Ed25519': [classical],
    'only ML-DSA-65': [postQuantum],
    swapped: [postQuantum, classical],
    'Ed25519 twice': [classical, classical],
    'ML-DSA-65 twice': [postQuantum, postQuantum],
    'Ed25519 repeated': [classical, postQuantum, classical],
    'ML-DSA-65 repeated': [classical, postQuantum, postQuantum],
    'Ed25519 and null': [classical, null],
    'null and ML-DSA-65': [null, postQuantum],
    'an empty Ed25519': [{ ...classical, value: '' }, postQuantum],
    'an empty ML-DSA-65': [classical, { ...postQuantum, value: '' }],
    'Ed25519 of zeros': [{ ...classical, value: '00'.repeat(64) }, postQuantum],
    'ML-DSA-65 of zeros': [classical, { ...postQuantum, value: '00'.repeat(3_309) }],
    'no ML-DSA-65 value': [classical, { alg: postQuantum.alg }],
    'Ed25519 under both names': [classical, { ...postQuantum, value: classical.value }],
    'names exchanged': [
      { ...classical, value: postQuantum.value },
      { ...postQuantum, value: classical.value },
    ],
    'another algorithm': [classical, { ...postQuantum, alg: 'ML-DSA-44' }],
    'no algorithm': [classical, { ...postQuantum, alg: 'none' }],
    'Ed25519 of another release': [otherClassical, postQuantum],
    'ML-DSA-65 of another release': [classical, otherPostQuantum],
    'both of another release': other.signatures,
  }
  const changed = Object.entries(sets).map(([label, signatures]) => ({
    label: `signatures: ${label}`,
    bytes: toCanonicalJson({ ...release, signatures }),
  }))
  const { signatures: _, ...unsigned } = release
  return [
    ...changed,
    { label: 'no signatures member', bytes: toCanonicalJson(unsigned) },
    { label: 'the release of another batch', bytes: toCanonicalJson(other) },
    { label: 'own signatures on another batch', bytes: toCanonicalJson({ ...release, batch: other.batch }) },
  ]
}

/** One in this many checks also runs the steps after a failed one, to find crashes there. Running them all would take most of the time. */
const WHOLE_EVERY = 50

class FailedStep extends Error {}

/** Checks whether a mock receipt is accepted. Mostly stops at the first failed step. */
function createReceiptCheck(): (
  bytes: Uint8Array,
  collateral: Uint8Array,
  options: CheckReceiptOptions,
) => Promise<boolean> {
  let count = 0
  return async (bytes, collateral, options) => {
    const isWhole = count++ % WHOLE_EVERY === 0
    const onStep: CheckReceiptOptions['onStep'] = ({ status }) => {
      if (status === 'fail' && !isWhole) throw new FailedStep()
    }
    try {
      return (await checkReceipt(bytes, collateral, { ...options, onStep })).verdict === 'mock'
    } catch (error) {
      if (error instanceof FailedStep) return false
      throw error
    }
  }
}

/** A version 1 receipt and its collateral. */
export async function createReceiptTargets(signedAt: Date): Promise<Target[]> {
  const service = createReceiptSimulator()
  const { bytes, collateral, anchors } = await service.issue({ signedAt, treeSize: 3, leafIndex: 1 })
  const { roots, mockEntropyKeys } = service
  const verifier = createVerifier({ roots })

  const check = createReceiptCheck()
  const options = { roots, anchors, mockEntropyKeys, verifier }

  return [
    { name: 'receipt', genuine: bytes, accept: (candidate) => check(candidate, collateral, options) },
    {
      name: 'receipt collateral',
      genuine: collateral,
      accept: (candidate) => check(bytes, candidate, options),
    },
  ]
}

/** Receipts of the golden vaults with their policies: approved, scheduled, off-chain and with address rules. */
export async function createVaultTargets(): Promise<Target[]> {
  const service = createReceiptSimulator()
  const targets: Target[] = []
  for (const [kind, golden] of Object.entries(goldenVaults)) {
    const issue = await service.issueV2({ signedAt: GOLDEN_SIGNED_AT, treeSize: 3, leafIndex: 1, ...golden })
    const named = { name: `receipt v2 vault ${kind}`, service, issue }
    targets.push(...createIssueTargets(named), ...createPolicyTargets(named))
  }
  return targets
}
