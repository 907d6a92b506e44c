import type { OffChainKind } from './kinds.ts'
import { hashMessage } from './message.ts'
import { readMembers } from './plainObject.ts'
import { data, type Infer, type ObjectSchema, object } from './schema.ts'
import { hashTypedData, type TypedData, typedData } from './typedData.ts'

const messageContent = object({ message: data })
/** A message as EIP-191 signs it: `0x` and hex. */
export type MessageContent = Infer<typeof messageContent>
export type Contents = { message: MessageContent; 'typed-data': TypedData }

export const contentSchemas: Record<OffChainKind, ObjectSchema> = { message: messageContent, 'typed-data': typedData }
export const offChainKinds = /* @__PURE__ */ Object.keys(contentSchemas) as OffChainKind[]

/** What is signed off the chain, with its kind. */
export type OffChainContent = { [Kind in OffChainKind]: { kind: Kind; content: Contents[Kind] } }[OffChainKind]

/** The chain of what is signed: any, if contracts of every chain take the signature, or none, if no contract takes it. */
export type ContentChain = bigint | 'any' | 'none'

type Row<Content> = { hash(content: Content): Uint8Array<ArrayBuffer>; chain(content: Content): ContentChain }

const rows: { [Kind in OffChainKind]: Row<Contents[Kind]> } = {
  message: {
    hash: ({ message }) => hashMessage(message),
    // 32 bytes are the hash of something else, and contracts of every chain take a signature over it (Safe, meta-transactions).
    chain: ({ message }) => (message.length === 2 + 2 * 32 ? 'any' : 'none'),
  },
  'typed-data': {
    hash: hashTypedData,
    // What can be hashed is an integer in one of its spellings.
    chain: ({ domain: { chainId } }) => (chainId === undefined ? 'any' : BigInt(chainId as string | number)),
  },
}

/** The members that each kind may have. Null if `hashContent` rejects other members, with the kind's own error code. */
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

/** The digest that is signed. Throws for content that has no one reading. */
export function hashContent({ kind, content }: OffChainContent): Uint8Array<ArrayBuffer> {
  return rows[kind].hash(content as never)
}

/** Of content that can be hashed. */
export function findContentChain({ kind, content }: OffChainContent): ContentChain {
  return rows[kind].chain(content as never)
}

/** Kind and content alone, of a value with other members. */
export function pickContent({ kind, content }: OffChainContent): OffChainContent {
  return { kind, content } as OffChainContent
}
