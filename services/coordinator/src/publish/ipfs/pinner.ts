/** A block as it is pinned: raw bytes under the CID that was computed here (CIDv1, codec raw, sha2-256). */
export type Block = { cid: string; bytes: Uint8Array<ArrayBuffer> }

/** Reads a block that this process holds. The reader hashes it. Undefined where it is not held. */
export type GetBlock = (cid: string) => Promise<Uint8Array<ArrayBuffer> | undefined>

/** The bytes as a service gives them back, hashed and compared with the CID here. Throws `PinError`. */
export type ReadBlock = (cid: string, options: { signal: AbortSignal }) => Promise<Uint8Array<ArrayBuffer>>

/** Puts blocks where anyone can get them. All throw `PinError`. */
export type Pinner = {
  readonly name: 'helia' | 'kubo' | 'pinata'
  /** Resolves once the service confirms that it holds the block, under exactly this CID. Pinning twice is safe. */
  pin(block: Block, options: { signal: AbortSignal }): Promise<void>
  read: ReadBlock
  /** The same, but only where the service says today that it pins the block for us: what can be read may be a copy that nobody keeps. */
  readPinned: ReadBlock
  stop(): Promise<void>
}

/** A pin service that is another process. */
export type RemotePinner = Pinner & {
  /** Whether it takes our credentials, without pinning anything. Throws `PinError`. */
  probe(options: { signal: AbortSignal }): Promise<{ version?: string }>
}
