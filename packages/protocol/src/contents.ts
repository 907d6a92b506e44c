import type { OffChainKind } from './kinds.ts'
import { hashMessage } from './message.ts'
import { readMembers } from './plainObject.ts'
import { data, type Infer, type ObjectSchema, object } from './schema.ts'
import { hashTypedData, type TypedData, typedData } from './typedData.ts'

const messageContent = object({ message: data })
export type MessageContent = Infer<typeof messageContent>
export type Contents = { message: MessageContent; 'typed-data': TypedData }

export const contentSchemas: Record<OffChainKind, ObjectSchema> = { message: messageContent, 'typed-data': typedData }
export const offChainKinds = /* @__PURE__ */ Object.keys(contentSchemas) as OffChainKind[]

/** A request to sign off-chain content. */
export type OffChainContent = { [Kind in OffChainKind]: { kind: Kind; content: Contents[Kind] } }[OffChainKind]

/** The content's chain: `any` if contracts on every chain accept the signature, `none` if no contract accepts it. */
export type ContentChain = bigint | 'any' | 'none'

type Row<Content> = { hash(content: Content): Uint8Array<ArrayBuffer>; chain(content: Content): ContentChain }

const rows: { [Kind in OffChainKind]: Row<Contents[Kind]> } = {
  message: {
    hash: ({ message }) => hashMessage(message),
    // A message of 32 bytes may be a hash. Contracts on every chain accept a signature over it (Safe, meta-transactions).
    chain: ({ message }) => (message.length === 2 + 2 * 32 ? 'any' : 'none'),
  },
  'typed-data': {
    hash: hashTypedData,
    // Content that can be hashed has an integer here, in one of the accepted spellings.
    chain: ({ domain: { chainId } }) => (chainId === undefined ? 'any' : BigInt(chainId as string | number)),
  },
}

/** The allowed members of each kind. Null if `hashContent` rejects other members, with the kind's error code. */
const exactMembers: Record<OffChainKind, string[] | null> = { message: ['message'], 'typed-data': null }

/** `invalid` creates the error to throw. */
export function parseOffChainContent(
  kind: unknown,
  content: unknown,
  invalid: (details: string) => Error,
): OffChainContent {
  if (typeof kind !== 'string' || !Object.hasOwn(rows, kind)) throw invalid('kind')
  const required = exactMembers[kind as OffChainKind]
  if (required) readMembers(content, { required }, invalid)
  return { kind, content } as OffChainContent
}

/** The digest to sign. Throws for ambiguous content. */
export function hashContent({ kind, content }: OffChainContent): Uint8Array<ArrayBuffer> {
  return rows[kind].hash(content as never)
}

/** Only for content that `hashContent` accepts. */
export function findContentChain({ kind, content }: OffChainContent): ContentChain {
  return rows[kind].chain(content as never)
}

/** Drops all members except kind and content. */
export function pickContent({ kind, content }: OffChainContent): OffChainContent {
  return { kind, content } as OffChainContent
}
