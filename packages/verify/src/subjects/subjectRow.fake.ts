import type { TcbStatus } from '@countersign/attestation'
import type { VerifierStep } from '../checkSubject.ts'
import type { Claim } from '../compareClaims.ts'
import type { Conclusion } from '../conclude.ts'
import type { FakeIssue } from '../issues.fake.ts'
import type { GivenFile } from '../loadCollateral.ts'
import type { FakeNetwork } from '../network.fake.ts'
import type { Manifest } from '../parseManifest.ts'
import type { Outcome } from '../verify.ts'

/*
 * Subjects that the command line and the page must judge alike. Each is what a reader gives, what the network answers, and what
 * must come of it; both are tested against this table.
 */

export const categories = [
  'good',
  'mock',
  'tampered',
  'garbage',
  'unreachable',
  'lying gateway',
  'lying node',
  'lying service',
  'wrong chain',
  'other transaction',
  'stale',
  'truncated',
  'oversized',
  'redirect',
  'event missing',
  'event not due',
  'back-dated',
  'manifest',
  'hardware state',
  'opening',
  'missing block',
] as const

export type Expected =
  | {
      verdict: Outcome['verdict']
      conclusion: Conclusion
      /**
       * By step: the code, or an empty text where the step fails without one. Every other step passes, but for `time-bound`,
       * which without an event is always skipped.
       */
      fail?: Readonly<Partial<Record<VerifierStep['id'], string>>>
      skip?: readonly VerifierStep['id'][]
      /** Of the service, in the order of `compareClaims`. */
      lies?: readonly Claim['member'][]
    }
  | { error: string }

export type SubjectRow = {
  name: string
  category: (typeof categories)[number]
  /** A file, or a text that names a receipt. */
  subject: GivenFile | string
  /** What the network has, unless it is the golden receipt of version 1. */
  issue?: FakeIssue
  /** Of an off-chain signature. */
  opening?: GivenFile
  /** Given beside it. */
  collaterals?: readonly GivenFile[]
  /** AMD's revocation list, which the page does not take. Without one, its step is a skip that no row has to name. */
  revocations?: GivenFile
  /** All that is known of the golden receipt, unless another is given. */
  manifest?: Manifest
  /** Unless false, simulated evidence is allowed. */
  allowMock?: boolean
  tcbStatuses?: readonly TcbStatus[]
  at?: Date
  /** Unless false, an event must be there. The page has no such field: there only a service can say that none is due. */
  isEventDue?: boolean
  /** How long after the signing an event may come, where it is not the default. The page has no such field. */
  maximumEventDelayS?: number
  /** Unless false, gateway and service are named. */
  hasSources?: boolean
  /** Unless false, a node is named. */
  hasNode?: boolean
  /** The chain that the site says its node is of, unless 31337. The command line takes the node's word for it. */
  nodeChainId?: number
  /** What the network does otherwise than the honest one. */
  spoil?: (network: FakeNetwork) => void
  expected: Expected
  /** What the page must make of it, where it knows something else than the command line does. */
  expectedOnPage?: Expected
}

type Verdicts = Extract<Expected, { verdict: unknown }>

/** Without a CID to compare with, and without a chain to ask. */
export const UNASKED = ['event', 'transaction'] as const
export const OFFLINE = ['cid', ...UNASKED] as const

export const accepted = { verdict: 'mock', conclusion: 'accepted' } as const

/** All holds, but no event is there to bound the time of signing. */
export function unbounded(skip: NonNullable<Verdicts['skip']>): Expected {
  return { verdict: 'mock', conclusion: 'unbounded', skip }
}
export const unboundedOffline = unbounded(OFFLINE)

export function failed(fail: NonNullable<Verdicts['fail']>, skip: Verdicts['skip'] = []): Expected {
  return { verdict: 'failed', conclusion: 'failed', fail, skip }
}

/** Bytes that a pointer leads to, and that are no receipt: nothing after the CID is judged. */
export function noReceipt(code: string, lies: Verdicts['lies'] = []): Expected {
  return { verdict: 'failed', conclusion: 'failed', fail: { format: code }, lies }
}

export function incomplete(skip: NonNullable<Verdicts['skip']>): Expected {
  return { verdict: 'incomplete', conclusion: 'incomplete', skip }
}
