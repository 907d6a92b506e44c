import { type ProofAnchor, type ProofPayload, ServiceError, toCanonicalJson } from '@countersign/protocol'
import { type AnyReceipt, nameSignature, type ReceiptCheck, type StepId, toCid } from '@countersign/receipt'
import type { Publication } from './createChain.ts'
import type { FoundAnchor } from './findAnchors.ts'
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
  /** The checkpoint that step `event` is about. */
  anchor?: FoundAnchor | undefined
  logged?: ReceiptCheck['logged']
}

/**
 * Checks each claim in the service's response against the chain and the bytes fetched by CID. The copy of the receipt in the response is
 * only a claim.
 */
export function compareClaims(proof: ProofPayload, found: ClaimEvidence | undefined): Claim[] {
  return [
    ...compareReceipt(proof, found),
    compareStatus(proof, found),
    ...compareAnchor(proof, found),
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
  const { publications = [], cid, anchor } = found ?? {}
  const isOther = cid !== undefined && cid !== ipfsCid
  const isElsewhere =
    anchor === undefined && publications.length > 0 && publications.every((publication) => publication.ipfsCid !== cid)
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
 * Specification §2 and §3: each status determines which members are set, and `complete` needs an event or a checkpoint. A service that
 * reports `pending_onchain` after that is only late: it may be waiting for confirmations.
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
    const where = event
      ? `block ${event.blockNumber} of ${event.blockTime.toISOString()} points to this receipt`
      : `block ${readPlace(found)?.blockNumber} has a checkpoint of a tree with this entry`
    if (event && status !== 'pending_onchain') return claim('false', `The chain has the event: ${where}.`)
    // With another status, no anchor may list the receipt that a checkpoint covers.
    const isBehind = status === 'pending_onchain' && (event ?? readPlace(found)) !== undefined
    return claim(
      'open',
      isBehind ? `The service is behind the chain: ${where}.` : 'Only the service knows its progress.',
    )
  }
  const due = `A complete proof has ${proof.anchor === undefined ? 'an event' : 'a checkpoint'} on the chain`
  if (onchainTxHash === null || onchainBlockNumber === null)
    return claim('false', `${due}, but the response names none.`)
  const [points, none] = found?.anchor
    ? ['The chain has a checkpoint that covers this receipt.', 'the chain has none that covers this receipt']
    : ['The chain points to this receipt.', 'the chain does not point to this receipt']
  const event = statusOf(found, 'event')
  if (event === 'pass') return claim('holds', points)
  return event === 'fail' ? claim('false', `${due}, but ${none}.`) : claim('open', 'The chain could not be checked.')
}

/** The checkpoint that the service names in place of an event. */
function compareAnchor({ anchor, status }: ProofPayload, found: ClaimEvidence | undefined): Claim[] {
  if (anchor === undefined) return []
  const event = isAbout(found, anchor) ? statusOf(found, 'event') : undefined
  const isCovered = event === 'pass' && found?.logged?.index === anchor.index
  const place = readPlace(found)
  // The publishing transaction may be replaced until it is confirmed.
  const isThere = place?.txHash === anchor.txHash.toLowerCase() && place.blockNumber === anchor.blockNumber
  return [
    toClaim('anchor', `A checkpoint of ${anchor.size} entries covers entry ${anchor.index}, the one of this receipt.`, {
      isTrue: event === undefined || event === 'skip' ? undefined : isCovered && (isThere || status !== 'complete'),
      holds: 'The chain has this checkpoint, and the path of the entry leads to it.',
      lie: 'The chain has no such checkpoint in this transaction and block, or it does not cover this entry.',
      open: 'The checkpoint could not be checked.',
    }),
  ]
}

/** Whether this checkpoint was checked. */
function isAbout(found: ClaimEvidence | undefined, { contract, id, size }: ProofAnchor): boolean {
  const { given } = found?.anchor ?? {}
  return given?.contract === contract.toLowerCase() && given.id === id && given.size === size
}

type Place = Pick<Publication, 'txHash' | 'blockNumber'>

/** Where the checkpoint is, if its block is final. */
function readPlace(found: ClaimEvidence | undefined): Place | undefined {
  const { log, isFinal } = found?.anchor ?? {}
  return isFinal && log ? { txHash: log.transactionHash.toLowerCase(), blockNumber: log.blockNumber } : undefined
}

function isPinned({ status }: ProofPayload): boolean {
  return status !== 'pending_pin' && status !== 'pin_failed'
}

function comparePublication(proof: ProofPayload, found: ClaimEvidence | undefined): Claim[] {
  const { status, ipfsCid, anchor, ...said } = proof
  // The publishing transaction may be replaced until it is confirmed.
  if (status !== 'complete') return []
  const place = anchor && isAbout(found, anchor) ? readPlace(found) : undefined
  const events = anchor
    ? [place ?? []].flat()
    : (found?.publications?.filter((event) => event.ipfsCid === ipfsCid) ?? [])
  const what = anchor ? 'checkpoint' : 'event'
  const compare = (member: 'onchainTxHash' | 'onchainBlockNumber', where: string, name: (event: Place) => string) => {
    const value = said[member]
    if (value === null) return []
    const [shown] = events.map(name)
    return toClaim(member, `The ${what} is in ${where} ${value}.`, {
      isTrue: shown === undefined ? undefined : events.some((event) => name(event) === String(value).toLowerCase()),
      holds: 'The chain has it there.',
      lie: `The chain has it in ${where} ${shown}.`,
      open: `No ${what} was found for comparison.`,
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
