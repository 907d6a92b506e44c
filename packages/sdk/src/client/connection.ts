import type { Hex, Opening } from '@countersign/protocol'
import type { PublicClient } from 'viem'
import type { ServiceApi } from './api.ts'

/** How to reach the service and the chain. */
export type ServiceClientConfig = {
  /** The service's origin; trailing slashes are stripped. */
  apiBaseUrl: string
  /** The chain that transactions are built for and broadcast to. */
  chainId: number
  /** Overrides the chain's default public RPC. Only Sepolia (11155111) and Base Sepolia (84532) have one. */
  rpcUrl?: string | undefined
  /** The most that the RPC may have the wallet pay for a unit of gas, in wei. Unset: 10,000 gwei. Above it: `fees_absurd`. */
  maxFeePerGas?: bigint | undefined
}

/** What the steps of a transaction use of a `ServiceClient`. */
export type Connection = {
  readonly config: ServiceClientConfig & {
    readonly maxFeePerGas: bigint
    /** The vault that signs; without it the user's own wallet does. */
    readonly wallet?: Hex
  }
  readonly api: ServiceApi
  readonly publicClient: PublicClient
  verifyChain(): Promise<void>
}

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
