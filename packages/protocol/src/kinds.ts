/**
 * The subjects of statements. Messages and typed data share one kind, so that the statement doesn't reveal which it was. For an address
 * the wallet signs nothing, and the quote attests its owner. `hasSignature` says whether the signature is public. Requests for the same
 * off-chain content are signed again each time, with fresh salts.
 */
export const subjects = {
  transaction: { hasSignature: true, isRepeatable: true },
  authorization: { hasSignature: true, isRepeatable: true },
  'off-chain': { hasSignature: false, isRepeatable: false },
  address: { hasSignature: false, isRepeatable: true },
  revocation: { hasSignature: false, isRepeatable: true },
} as const

export type SignatureKind = keyof typeof subjects

export const signatureKinds = /* @__PURE__ */ Object.keys(subjects) as [SignatureKind, ...SignatureKind[]]

/** The kinds whose signature is public. */
type PublicKind = {
  [Kind in SignatureKind]: (typeof subjects)[Kind]['hasSignature'] extends true ? Kind : never
}[SignatureKind]

/**
 * The kinds of requests, one row each. `number` is the kind's byte in approvals and stamps. Vault rules can allow only a kind that is
 * `isApprovable`: the code that an authorization installs needs no approvals. If a kind has `any`, its rules don't limit the content, and
 * `any` is the word for it in descriptions. `anyChain` says whether contracts on every chain accept all such signatures.
 */
export const kinds = {
  transaction: { subject: 'transaction', number: 1, isApprovable: true, name: 'transaction' },
  authorization: { subject: 'authorization', number: 4, isApprovable: false, name: 'authorization' },
  message: {
    subject: 'off-chain',
    number: 2,
    isApprovable: true,
    name: 'message (EIP-191)',
    any: 'messages',
    anyChain: false,
  },
  'typed-data': { subject: 'off-chain', number: 3, isApprovable: true, name: 'typed data (EIP-712)' },
  address: { subject: 'address', number: 5, isApprovable: false, name: 'address' },
  revocation: { subject: 'revocation', number: 6, isApprovable: true, name: 'revocation' },
} as const satisfies Record<string, Row>

export type Kind = keyof typeof kinds

type Row = {
  subject: SignatureKind
  number: number
  isApprovable: boolean
  name: string
  any?: string
  anyChain?: boolean
}
type KindsOf<Members> = { [One in Kind]: (typeof kinds)[One] extends Members ? One : never }[Kind]

/** Content signed off-chain. Only a commitment to it is public. */
export type OffChainKind = KindsOf<{ subject: 'off-chain' }>

/** The kinds that a passkey can approve. */
export type ApprovalKind = KindsOf<{ isApprovable: true }>

export type UnlimitedKind = KindsOf<{ any: string }>

export function isUnlimitedKind(kind: unknown): kind is UnlimitedKind {
  return typeof kind === 'string' && Object.hasOwn(kinds, kind) && 'any' in kinds[kind as Kind]
}

export function isOffChain<Asked extends { kind: Kind }>(
  asked: Asked,
): asked is Extract<Asked, { kind: OffChainKind }> {
  return kinds[asked.kind].subject === 'off-chain'
}

/** Whether the signature of this kind is public. */
export function hasSignature<One extends { kind: SignatureKind }>(
  signed: One,
): signed is Extract<One, { kind: PublicKind }> {
  return subjects[signed.kind].hasSignature
}
