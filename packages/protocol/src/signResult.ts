/*
 * Apart from the other resources, because every error may carry it: with an import of its own it would close a circle, since all
 * that one could import throws errors.
 */

/** What `signAndSend` answers. The slug cannot be derived from the hash: sharing a proof does not reveal more than it says. */
export type SignResult = { txHash: `0x${string}`; attestationSlug: string }
