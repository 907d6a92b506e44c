import { type ProofPayload, ServiceError, toCanonicalJson } from '@countersign/protocol'
import { type AnyReceipt, nameSignature, type ReceiptCheck, type StepId, toCid } from '@countersign/receipt'
import type { Publication } from './createChain.ts'
import type { VerifierStep } from './steps.ts'

/** A claim of the service about a proof, compared with the evidence. */
export type Claim = {
  /** The member of the service's answer. */
  member: keyof ProofPayload
  /** The claim as a sentence. */
  text: string
  /** `open`: can't be checked. */
  verdict: 'holds' | 'false' | 'open'
  detail: string
}

/** The evidence that claims are compared with. */
export type ClaimEvidence = Pick<ReceiptCheck, 'cid' | 'isMock'> & {
  steps: readonly VerifierStep[]
  /** The evidence is simulated, and the caller doesn't allow that. */
  isMockRefused: boolean
  /** Undefined if the pinned bytes are not a receipt. */
  receipt: AnyReceipt | undefined
  publications: readonly Publication[] | undefined
}

/**
 * Checks each claim in the service's response against the chain and the bytes fetched by CID. The copy of the receipt in the response is
 * only a claim.
 */
export function compareClaims(proof: ProofPayload, found: ClaimEvidence | undefined): Claim[] {
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

function compareReceipt(proof: ProofPayload, found: ClaimEvidence | undefined): Claim[] {
  const receipt = found?.receipt
  const same = (member: keyof ProofPayload, what: string, said: string | number, shown: string | number | undefined) =>
    toClaim(member, `The ${what} is ${said}.`, {
      isTrue: shown === undefined ? undefined : String(said).toLowerCase() === String(shown).toLowerCase(),
      holds: 'The receipt says the same.',
      lie: `The receipt says ${shown}.`,
      open: 'There is no receipt to compare it with.',
    })
  const transaction = receipt && nameSignature(receipt)
  // A missing kind claims that it is a transaction.
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

function compareCopy(proof: ProofPayload, found: ClaimEvidence | undefined): Claim[] {
  if (proof.receipt !== null) {
    return [
      toClaim('receipt', 'The response includes a copy of the receipt.', {
        isTrue: found && isSameReceipt(proof.receipt, found.cid),
        holds: 'It is identical to the pinned receipt.',
        lie: 'It differs from the pinned receipt.',
        open: 'The pinned receipt is not available for comparison.',
      }),
    ]
  }
  if (!isPinned(proof)) return []
  const detail = `With the status ${proof.status}, the response must include one.`
  return [{ member: 'receipt', text: 'The response includes no copy of the receipt.', verdict: 'false', detail }]
}

function compareCid(ipfsCid: string, found: ClaimEvidence | undefined): Claim {
  const { publications = [], cid } = found ?? {}
  const isOther = cid !== undefined && cid !== ipfsCid
  const isElsewhere = publications.length > 0 && publications.every((publication) => publication.ipfsCid !== cid)
  return toClaim('ipfsCid', `The receipt is pinned as ${ipfsCid}.`, {
    isTrue: cid === undefined ? undefined : !isOther && !isElsewhere,
    holds: 'The bytes match this CID.',
    lie: isOther
      ? `The bytes have the CID ${cid}.`
      : `The chain points to another receipt: ${publications[0]?.ipfsCid}.`,
    open: 'The receipt could not be fetched.',
  })
}

/**
 * Specification §2 and §3: each status determines which members are set, and `complete` needs an event. A service that reports
 * `pending_onchain` after the event is only late: it may be waiting for confirmations.
 */
function compareStatus(proof: ProofPayload, found: ClaimEvidence | undefined): Claim {
  const { status, ipfsCid, onchainTxHash, onchainBlockNumber } = proof
  const claim = (verdict: Claim['verdict'], detail: string): Claim => ({
    member: 'status',
    text: `The status is ${status}.`,
    verdict,
    detail,
  })
  if (isPinned(proof) !== (ipfsCid !== null)) {
    const [due, named] = ipfsCid === null ? ['a CID', 'none'] : ['no CID', 'one']
    return claim('false', `With this status there must be ${due}, but the response has ${named}.`)
  }
  if (status !== 'complete') {
    const event = found?.publications?.find((publication) => publication.ipfsCid === ipfsCid)
    if (event === undefined) return claim('open', 'Only the service knows its progress.')
    const where = `block ${event.blockNumber} of ${event.blockTime.toISOString()} points to this receipt`
    return status === 'pending_onchain'
      ? claim('open', `The service is behind the chain: ${where}.`)
      : claim('false', `The chain has the event: ${where}.`)
  }
  if (onchainTxHash === null || onchainBlockNumber === null) {
    return claim('false', 'A complete proof has an event on the chain, but the response names none.')
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

function comparePublication({ status, ipfsCid, ...said }: ProofPayload, found: ClaimEvidence | undefined): Claim[] {
  // The publishing transaction may be replaced until it is confirmed.
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
      open: 'No event was found for comparison.',
    })
  }
  return [
    compare('onchainTxHash', 'the transaction', ({ txHash }) => txHash),
    compare('onchainBlockNumber', 'block', ({ blockNumber }) => `${blockNumber}`),
  ].flat()
}

function compareQuote({ kmsQuoteVerified }: ProofPayload, found: ClaimEvidence | undefined): Claim {
  const quote = statusOf(found, 'quote')
  const isRefused = found?.isMockRefused === true
  const isGenuine = quote === undefined || quote === 'skip' ? undefined : quote === 'pass' && !isRefused
  const mock = found?.isMock ? ' But it is simulated.' : ''
  return toClaim(
    'kmsQuoteVerified',
    `The service ${kmsQuoteVerified ? 'verified' : 'did not verify'} the enclave’s quote.`,
    {
      isTrue: isGenuine === undefined ? undefined : isGenuine === kmsQuoteVerified,
      holds: isGenuine ? `It is valid here too.${mock}` : 'It is not valid here either.',
      lie: isGenuine
        ? `It is valid here.${mock}`
        : `It is not valid here${isRefused && quote === 'pass' ? ', because it is simulated' : ''}.`,
      open: 'The quote could not be checked.',
    },
  )
}

function statusOf(found: ClaimEvidence | undefined, id: StepId) {
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
