/** A block to pin: raw bytes and the CID that this process computed (CIDv1, codec raw, sha2-256). */
export type Block = { cid: string; bytes: Uint8Array<ArrayBuffer> }

/** Reads a block that this process stores, or returns undefined. The caller must compare its hash with the CID. */
export type GetBlock = (cid: string) => Promise<Uint8Array<ArrayBuffer> | undefined>

/** Reads a block back from a service and compares its hash with the CID. Throws `PinError`. */
export type ReadBlock = (cid: string, options: { signal: AbortSignal }) => Promise<Uint8Array<ArrayBuffer>>

/** Stores blocks where anyone can fetch them. All methods throw `PinError`. */
export type Pinner = {
  readonly name: 'helia' | 'kubo' | 'pinata'
  /** Resolves once the service confirms that it holds the block, under exactly this CID. Pinning twice is safe. */
  pin(block: Block, options: { signal: AbortSignal }): Promise<void>
  read: ReadBlock
  /** Like `read`, but only if the service reports that it pins the block for us. A readable block may be an unpinned copy. */
  readPinned: ReadBlock
  stop(): Promise<void>
}

/** A pin service in another process. */
export type RemotePinner = Pinner & {
  /** Checks that the service accepts our credentials, without pinning anything. Throws `PinError`. */
  probe(options: { signal: AbortSignal }): Promise<{ version?: string }>
}
