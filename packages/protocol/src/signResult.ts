/* A separate file without imports: every error may carry this type, and an import would be circular. */

/** The result of `signAndSend`. The slug can't be derived from the hash, so sharing a proof reveals nothing else. */
export type SignResult = { txHash: `0x${string}`; attestationSlug: string }
