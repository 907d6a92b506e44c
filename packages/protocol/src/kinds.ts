/**
 * What a statement can be about. Messages and typed data are one kind in public: which of them it was is part of what stays private.
 * For an address nothing is signed: the quote alone says whose it is. `hasSignature` says whether everyone sees a signature, and for which
 * chain. The same off-chain content is signed again, with fresh salts, each time that it is asked for.
 */
export const subjects = {
  transaction: { hasSignature: true, isRepeatable: true },
  authorization: { hasSignature: true, isRepeatable: true },
  'off-chain': { hasSignature: false, isRepeatable: false },
  address: { hasSignature: false, isRepeatable: true },
} as const

export type SignatureKind = keyof typeof subjects

export const signatureKinds = /* @__PURE__ */ Object.keys(subjects) as [SignatureKind, ...SignatureKind[]]

/** The kinds whose signature everyone sees. */
type PublicKind = {
  [Kind in SignatureKind]: (typeof subjects)[Kind]['hasSignature'] extends true ? Kind : never
}[SignatureKind]

/**
 * The kinds of requests, one row each. `approval` is the kind's number in the challenge that a passkey signs. Vault rules can't allow a kind
 * without one: an authorization has none, because the code that it installs needs no approvals. If a kind has `any`, its rules don't limit the
 * content, and `any` is the word for it in descriptions. `anyChain` says whether contracts on every chain accept all such signatures.
 */
export const kinds = {
  transaction: { subject: 'transaction', approval: 1, name: 'transaction' },
  authorization: { subject: 'authorization', approval: null, name: 'authorization' },
  message: { subject: 'off-chain', approval: 2, name: 'message (EIP-191)', any: 'messages', anyChain: false },
  'typed-data': { subject: 'off-chain', approval: 3, name: 'typed data (EIP-712)' },
  address: { subject: 'address', approval: null, name: 'address' },
} as const satisfies Record<string, Row>

export type Kind = keyof typeof kinds

type Row = { subject: SignatureKind; approval: number | null; name: string; any?: string; anyChain?: boolean }
type KindsOf<Members> = { [One in Kind]: (typeof kinds)[One] extends Members ? One : never }[Kind]

/** What is signed off the chain: nothing is public of it but a commitment. */
export type OffChainKind = KindsOf<{ subject: 'off-chain' }>

/** What a passkey can approve. */
export type ApprovalKind = KindsOf<{ approval: number }>

export type UnlimitedKind = KindsOf<{ any: string }>

export function isUnlimitedKind(kind: unknown): kind is UnlimitedKind {
  return typeof kind === 'string' && Object.hasOwn(kinds, kind) && 'any' in kinds[kind as Kind]
}

export function isOffChain<Asked extends { kind: Kind }>(
  asked: Asked,
): asked is Extract<Asked, { kind: OffChainKind }> {
  return kinds[asked.kind].subject === 'off-chain'
}

/** Whether everyone sees the signature of this kind. */
export function hasSignature<One extends { kind: SignatureKind }>(
  signed: One,
): signed is Extract<One, { kind: PublicKind }> {
  return subjects[signed.kind].hasSignature
}
