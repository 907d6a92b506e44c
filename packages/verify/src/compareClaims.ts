import { type ProofPayload, ServiceError, toCanonicalJson } from '@countersign/protocol'
import { type AnyReceipt, nameSignature, type ReceiptCheck, type StepId, toCid } from '@countersign/receipt'
import type { Publication } from './createChain.ts'
import type { VerifierStep } from './steps.ts'

/** Something that the service says of a proof, held against what the evidence shows. */
export type Claim = {
  /** The member of the service's answer. */
  member: keyof ProofPayload
  /** What the service says, as a sentence. */
  text: string
  /** `open`: nothing here can tell. */
  verdict: 'holds' | 'false' | 'open'
  /** What was found. */
  detail: string
}

/** What the claims are compared with. */
export type Found = Pick<ReceiptCheck, 'cid' | 'isMock'> & {
  steps: readonly VerifierStep[]
  /** Simulated evidence, without leave for it, is no evidence of hardware. */
  isMockRefused: boolean
  /** Undefined where the pinned bytes are no receipt. */
  receipt: AnyReceipt | undefined
  publications: readonly Publication[] | undefined
}

/**
 * The service's answer, claim by claim. Only bytes that were fetched by their CID and a chain that was asked count against
 * it; the copy of the receipt in the answer is itself just a claim.
 */
export function compareClaims(proof: ProofPayload, found: Found | undefined): Claim[] {
  return [
    ...compareReceipt(proof, found),
    compareStatus(proof, found),
    ...comparePublication(proof, found),
    compareQuote(proof, found),
  ]
}

export function findLies(claims: readonly Claim[]): Claim[] {
  return claims.filter(({ verdict }) => verdict === 'false')
}

function compareReceipt(proof: ProofPayload, found: Found | undefined): Claim[] {
  const receipt = found?.receipt
  const same = (member: keyof ProofPayload, what: string, said: string | number, shown: string | number | undefined) =>
    toClaim(member, `The ${what} is ${said}.`, {
      isTrue: shown === undefined ? undefined : String(said).toLowerCase() === String(shown).toLowerCase(),
      holds: 'The receipt says the same.',
      lie: `The receipt says ${shown}.`,
      open: 'There is no receipt to compare with.',
    })
  const transaction = receipt && nameSignature(receipt)
  // Only what is not a transaction has a kind, so that one left out is a claim too.
  const kind = proof.kind ?? 'transaction'
  const shownKind = receipt && ('kind' in receipt ? receipt.kind : 'transaction')
  return [
    same('txHash', 'transaction', proof.txHash, transaction?.txHash),
    same('chainId', 'chain', proof.chainId, transaction?.chainId),
    same('walletAddress', 'wallet', proof.walletAddress, transaction?.from),
    ...(kind === 'transaction' && (shownKind ?? kind) === kind ? [] : [same('kind', 'kind', kind, shownKind)]),
    ...(proof.ipfsCid === null ? [] : [compareCid(proof.ipfsCid, found)]),
    ...compareCopy(proof, found),
  ]
}

function compareCopy(proof: ProofPayload, found: Found | undefined): Claim[] {
  if (proof.receipt !== null) {
    return [
      toClaim('receipt', 'A copy of the receipt comes with the answer.', {
        isTrue: found && isSameReceipt(proof.receipt, found.cid),
        holds: 'It is the pinned receipt, to the byte.',
        lie: 'It is not the pinned receipt.',
        open: 'The pinned receipt is not at hand to compare with.',
      }),
    ]
  }
  if (!isPinned(proof)) return []
  const detail = `The status is ${proof.status}, and in this state the answer holds one.`
  return [{ member: 'receipt', text: 'No copy of the receipt comes with the answer.', verdict: 'false', detail }]
}

function compareCid(ipfsCid: string, found: Found | undefined): Claim {
  const { publications = [], cid } = found ?? {}
  const isOther = cid !== undefined && cid !== ipfsCid
  const isElsewhere = publications.length > 0 && publications.every((publication) => publication.ipfsCid !== cid)
  return toClaim('ipfsCid', `The receipt is pinned as ${ipfsCid}.`, {
    isTrue: cid === undefined ? undefined : !isOther && !isElsewhere,
    holds: 'The bytes under this CID hash to it.',
    lie: isOther
      ? `The bytes have the CID ${cid}.`
      : `The chain points to another receipt: ${publications[0]?.ipfsCid}.`,
    open: 'It could not be fetched.',
  })
}

/**
 * Specification §2 and §3: which members are set in which state, and that `complete` means an event. A service that still waits for an
 * event which the chain has is behind, not false: it waits for confirmations or finality, or its worker was away.
 */
function compareStatus(proof: ProofPayload, found: Found | undefined): Claim {
  const { status, ipfsCid, onchainTxHash, onchainBlockNumber } = proof
  const claim = (verdict: Claim['verdict'], detail: string): Claim => ({
    member: 'status',
    text: `The status is ${status}.`,
    verdict,
    detail,
  })
  if (isPinned(proof) !== (ipfsCid !== null)) {
    const [due, named] = ipfsCid === null ? ['a CID', 'none'] : ['no CID yet', 'one']
    return claim('false', `In this state there is ${due}, but the answer names ${named}.`)
  }
  if (status !== 'complete') {
    const event = found?.publications?.find((publication) => publication.ipfsCid === ipfsCid)
    if (event === undefined) return claim('open', 'Only the service knows how far it is.')
    const where = `block ${event.blockNumber} of ${event.blockTime.toISOString()} points to this receipt`
    return status === 'pending_onchain'
      ? claim('open', `The service is behind the chain: ${where}.`)
      : claim('false', `The chain has the event: ${where}.`)
  }
  if (onchainTxHash === null || onchainBlockNumber === null) {
    return claim('false', 'A complete proof has an event on the chain, but the answer names none.')
  }
  const event = statusOf(found, 'event')
  if (event === 'pass') return claim('holds', 'The chain points to this receipt.')
  return event === 'fail'
    ? claim('false', 'A complete proof has an event on the chain, but the chain does not point to this receipt.')
    : claim('open', 'The chain was not asked, or did not answer.')
}

function isPinned({ status }: ProofPayload): boolean {
  return status !== 'pending_pin' && status !== 'pin_failed'
}

function comparePublication({ status, ipfsCid, ...said }: ProofPayload, found: Found | undefined): Claim[] {
  // Before it is confirmed, the publishing transaction may still be replaced.
  if (status !== 'complete') return []
  const events = found?.publications?.filter((event) => event.ipfsCid === ipfsCid) ?? []
  const compare = (
    member: 'onchainTxHash' | 'onchainBlockNumber',
    what: string,
    name: (event: Publication) => string,
  ) => {
    const value = said[member]
    if (value === null) return []
    const [shown] = events.map(name)
    return toClaim(member, `The event is in ${what} ${value}.`, {
      isTrue: shown === undefined ? undefined : events.some((event) => name(event) === String(value).toLowerCase()),
      holds: 'The chain has it there.',
      lie: `The chain has it in ${what} ${shown}.`,
      open: 'No event was found to compare with.',
    })
  }
  return [
    compare('onchainTxHash', 'the transaction', ({ txHash }) => txHash),
    compare('onchainBlockNumber', 'block', ({ blockNumber }) => `${blockNumber}`),
  ].flat()
}

function compareQuote({ kmsQuoteVerified }: ProofPayload, found: Found | undefined): Claim {
  const quote = statusOf(found, 'quote')
  const isRefused = found?.isMockRefused === true
  const isGenuine = quote === undefined || quote === 'skip' ? undefined : quote === 'pass' && !isRefused
  const mock = found?.isMock ? ' It is simulated, though.' : ''
  return toClaim(
    'kmsQuoteVerified',
    `The service ${kmsQuoteVerified ? 'verified' : 'did not verify'} the enclave’s quote.`,
    {
      isTrue: isGenuine === undefined ? undefined : isGenuine === kmsQuoteVerified,
      holds: isGenuine ? `It verifies here too.${mock}` : 'It does not verify here either.',
      lie: isGenuine
        ? `Here it does verify.${mock}`
        : `Here it does not verify${isRefused && quote === 'pass' ? ': it is simulated' : ''}.`,
      open: 'The quote could not be judged here.',
    },
  )
}

function statusOf(found: Found | undefined, id: StepId) {
  return found?.steps.find((step) => step.id === id)?.status
}

function toClaim(
  member: Claim['member'],
  text: string,
  { isTrue, holds, lie, open }: { isTrue: boolean | undefined; holds: string; lie: string; open: string },
): Claim {
  if (isTrue === undefined) return { member, text, verdict: 'open', detail: open }
  return { member, text, ...(isTrue ? { verdict: 'holds', detail: holds } : { verdict: 'false', detail: lie }) }
}

function isSameReceipt(stated: unknown, cid: string): boolean {
  try {
    return toCid(toCanonicalJson(stated)) === cid
  } catch (error) {
    if (error instanceof ServiceError) return false
    throw error
  }
}
