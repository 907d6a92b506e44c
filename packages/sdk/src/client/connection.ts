import type { Hex } from '@countersign/protocol'
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
