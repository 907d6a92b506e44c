import { type Difference, PolicyError } from '@countersign/attestation'
import { ServiceError, type SignatureKind, signatureKinds, subjects } from '@countersign/protocol'

/** The checks of a receipt, in the order in which a person would do them. */
export const stepTitles = {
  format: 'The receipt is in its canonical form',
  cid: 'The bytes match the CID',
  blocks: 'Each block matches its CID',
  opening: 'The opening belongs to this signature',
  digest: 'The signed content hashes to its digest',
  signature: 'The wallet made the signature',
  'tx-hash': 'The signed transaction has the stated hash',
  statement: 'The enclave’s statement is about this signature',
  log: 'The signature is in a public log that witnesses cosigned',
  'vault-policy': 'The policy is the one that the statement names',
  'vault-rule': 'The policy allows what was signed',
  'vault-approvals': 'The required approvers have approved',
  'vault-budget': 'The payment was counted, and is within the budgets',
  inclusion: 'The statement is in the batch',
  collateral: 'The collateral is the one that the receipt names',
  quote: 'The quote verifies up to a known root key',
  'report-data': 'The quote covers the batch',
  'quote-policy': 'The enclave was in an acceptable state',
  platform: 'The enclave ran on a known machine',
  measurement: 'The enclave ran known code',
  config: 'The enclave had a known configuration',
  entropy: 'The entropy sample is signed and the one in the statement',
  'entropy-key': 'The entropy source is known',
  'coordinator-report': 'The coordinator’s report verifies up to a known root key',
  'coordinator-policy': 'The coordinator was in an acceptable state',
  'coordinator-chip': 'The coordinator ran on a listed chip',
  'coordinator-revocation': 'The coordinator’s certificates are not revoked',
  'coordinator-key': 'The coordinator’s report is for the key in the statement',
  'coordinator-measurement': 'The coordinator ran known code',
  'coordinator-config': 'The coordinator had a known configuration',
  release: 'That coordinator released the signature with this evidence',
  time: 'Entropy, signing and publication happened in order',
  'time-bound': 'The receipt was published soon after the signing',
  event: 'The chain points to this receipt',
  transaction: 'The transaction is on its chain',
  reevaluation: 'The evidence is valid at another time',
} as const

export type StepId = keyof typeof stepTitles

export type StepStatus = 'pass' | 'fail' | 'skip'

/** One check: its result and the reason, in a plain sentence. */
export type Step = {
  id: StepId
  title: string
  status: StepStatus
  detail: string
  code?: string
  /** If unknown code ran: each register or event that differs from the closest trusted entry. */
  differences?: readonly Difference[]
}

/** Steps whose skipping means missing anchors (for code, settings or patch levels), not a fault. */
export const anchorSteps: readonly StepId[] = [
  'measurement',
  'config',
  'entropy-key',
  'coordinator-policy',
  'coordinator-measurement',
  'coordinator-config',
]

/** Code of a step that fails only because the reader's anchors do not cover the receipt. */
export const NOT_IN_MANIFEST = 'not_in_manifest'

const notInManifestCodes: readonly (string | undefined)[] = [
  NOT_IN_MANIFEST,
  'measurement_not_allowed',
  'event_not_allowed',
  'platform_not_allowed',
  'chip_not_allowed',
  'chip_not_named',
  'chip_not_listed',
]

/** Whether a step failed because the reader lists other code, configurations, machines, keys or witnesses. */
export function isNotInManifest({ status, code }: Pick<Step, 'status' | 'code'>): boolean {
  return status === 'fail' && notInManifestCodes.includes(code)
}

/**
 * Steps that must pass for a verified receipt, if its kind has them. Also required are `blocks` in version 2, `log` if the enclave's
 * settings name a log or the reader names witnesses, and `opening`, `cid`, `platform`, `event` and `reevaluation` if the caller gives
 * something to compare the receipt with. `time-bound` and the anchor steps have separate verdicts. `coordinator-chip` and
 * `coordinator-revocation` matter only if they fail.
 */
export const requiredSteps: readonly StepId[] = [
  'format',
  'digest',
  'signature',
  'tx-hash',
  'statement',
  'inclusion',
  'collateral',
  'quote',
  'report-data',
  'quote-policy',
  'measurement',
  'config',
  'entropy',
  'entropy-key',
  'coordinator-report',
  'coordinator-policy',
  'coordinator-key',
  'coordinator-measurement',
  'coordinator-config',
  'release',
  'time',
]

/** Steps that must also pass if a vault signed, if its kind has them. A payment from a budget also needs `vault-budget`. */
export const vaultSteps: readonly StepId[] = ['vault-policy', 'vault-rule', 'vault-approvals']

const publicKinds = signatureKinds.filter((kind) => subjects[kind].hasSignature)

/**
 * Steps that apply only to some kinds. An off-chain signature has only a public commitment, but an opening can make the others pass too. An
 * attested address has no signature.
 */
const stepsOfKind: Partial<Record<StepId, readonly SignatureKind[]>> = {
  digest: publicKinds,
  signature: publicKinds,
  'tx-hash': ['transaction'],
  'vault-rule': ['transaction', 'revocation'],
  'vault-approvals': ['transaction', 'revocation'],
  'vault-budget': ['transaction'],
}

/** Whether a step is required for a kind of signature. */
export function isStepOf(id: StepId, kind: SignatureKind): boolean {
  return stepsOfKind[id]?.includes(kind) ?? true
}

/** Thrown inside a step: the check failed. The message is a plain sentence. */
export class StepFailure extends Error {
  override name = 'StepFailure'
  readonly code: string | undefined
  constructor(message: string, code?: string) {
    super(message)
    this.code = code
  }
}

/** Thrown inside a step: the values to compare with are missing or unavailable. */
export class StepSkip extends Error {
  override name = 'StepSkip'
}

export type Transcript = {
  steps: Step[]
  /** Runs one check. It returns a sentence and a value for later steps. Our own errors become the outcome. */
  run<Value>(id: StepId, check: () => Awaitable<[detail: string, value: Value]>): Promise<Value | undefined>
}

type Awaitable<Value> = Value | Promise<Value>

export function createTranscript(onStep: (step: Step) => void = () => {}): Transcript {
  const steps: Step[] = []
  return {
    steps,
    async run(id, check) {
      const { value, ...outcome } = await runCheck(check)
      const step = { id, title: stepTitles[id], ...outcome }
      steps.push(step)
      onStep(step)
      return value
    },
  }
}

type Outcome<Value> = Omit<Step, 'id' | 'title'> & { value?: Value }

async function runCheck<Value>(check: () => Awaitable<[string, Value]>): Promise<Outcome<Value>> {
  try {
    const [detail, value] = await check()
    return { status: 'pass', detail, value }
  } catch (error) {
    if (error instanceof StepSkip) return { status: 'skip', detail: error.message }
    if (error instanceof StepFailure) {
      return { status: 'fail', detail: error.message, ...(error.code === undefined ? {} : { code: error.code }) }
    }
    if (!(error instanceof ServiceError)) throw error
    const detail = error.details === undefined ? error.message : `${error.message}: ${error.details}`
    const differences = error instanceof PolicyError ? error.differences : undefined
    return { status: 'fail', detail: `${detail}.`, code: error.code, ...(differences && { differences }) }
  }
}

/** The value of an earlier step. Skips this step without it. */
export function needs<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new StepSkip(`Not checked: ${what}.`)
  return value
}

export function failIf(condition: boolean, sentence: string, code?: string): void {
  if (condition) throw new StepFailure(sentence, code)
}
