import type { Hex, Opening } from '@countersign/protocol'

/** What was signed, for listeners of libraries that give the caller only a signature or a hash. */
export type SignedEvent =
  | { kind: 'transaction'; txHash: Hex; slug: string }
  | { kind: 'authorization'; slug: string }
  | {
      kind: 'off-chain'
      slug: string
      /** As `signMessage` of the client answers it: keep it, or nobody can ever show what was signed. */
      opening: Opening
    }

/** Called later: what a listener throws must not undo a signature that is made already, nor keep it from its caller. */
export function notifySigned(onSigned: ((signed: SignedEvent) => void) | undefined, signed: SignedEvent): void {
  if (onSigned) queueMicrotask(() => onSigned(signed))
}
