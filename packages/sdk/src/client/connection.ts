import type { Hex, Opening } from '@countersign/protocol'
import type { PublicClient } from 'viem'
import type { ServiceApi } from './api.ts'
import type { Session } from './request.ts'

/** How to reach the service and the chain. */
export type ServiceClientConfig = {
  /** The service's origin; trailing slashes are stripped. */
  apiBaseUrl: string
  /** The chain that transactions are built for and broadcast to. */
  chainId: number
  /** Overrides the chain's default public RPC. Only Sepolia (11155111) and Base Sepolia (84532) have one. */
  rpcUrl?: string | undefined
  /** The highest fee per unit of gas, in wei. Defaults to 10,000 gwei. A higher fee fails with `fees_absurd`. */
  maxFeePerGas?: bigint | undefined
  /** `boundSession()` or `directSession()`, which keep a key in the browser. By default, the session is a cookie and the SDK stores no key. */
  session?: Session | undefined
}

/** The members of a `ServiceClient` that signing needs. */
export type Connection = {
  readonly config: ServiceClientConfig & {
    readonly maxFeePerGas: bigint
    /** The vault that signs. Without it, the user's own wallet signs. */
    readonly wallet?: Hex
  }
  readonly api: ServiceApi
  readonly publicClient: PublicClient
  verifyChain(): Promise<void>
}

/** The members that the signature of a transaction needs. */
export type SigningConnection = {
  readonly config: Pick<Connection['config'], 'maxFeePerGas' | 'session'>
  readonly api: Pick<ServiceApi, 'getWallet' | 'signDigest'>
}

/** A signature, for listeners of libraries that return only a signature or a hash. */
export type SignedEvent =
  | { kind: 'transaction'; txHash: Hex; slug: string }
  | { kind: 'authorization'; slug: string }
  | {
      kind: 'off-chain'
      slug: string
      /** Store it: it is the only way to show what was signed. */
      opening: Opening
    }

/** Runs the listener in a microtask, so that an error in it can't keep the signature from the caller. */
export function notifySigned(onSigned: ((signed: SignedEvent) => void) | undefined, signed: SignedEvent): void {
  if (onSigned) queueMicrotask(() => onSigned(signed))
}
