import {
  type Hex,
  type Opening,
  type ServiceContextValue,
  ServiceError,
  type SignResult,
  type UseAttestationReturnType,
  type UseSignReturnType,
} from '@countersign/sdk'

/** An error as the page shows it. */
export type ShownError = Pick<ServiceError, 'code' | 'message' | 'details' | 'status' | 'signed'>

type Shown<State> = { [Name in keyof State]: State[Name] extends ServiceError | null ? ShownError | null : State[Name] }

/** The texts of the pages, by place. */
export type Views = {
  useService: Shown<Pick<ServiceContextValue, 'user' | 'wallet' | 'ready' | 'error'>>
  useSign: Shown<Pick<UseSignReturnType, 'pending' | 'error' | 'lastResult'>>
  useAttestation: Shown<UseAttestationReturnType>
  /** Outcomes of the last calls. */
  outcomes: ({ value: SignResult | null } | { error: ShownError })[]
  /** Number of times React has mounted the page. */
  mounts: number
  wagmi: {
    status: string
    address: string | null
    txHash: string | null
    error: string | null
    slugs: string[]
    /** The text, signature and opening of the sign-in with Ethereum. */
    signIn: { message: string; signature: Hex | null; opening: Opening | null }
  }
}

export function View<Name extends keyof Views>({ name, value }: { name: Name; value: unknown }) {
  return <output aria-label={name}>{JSON.stringify(value, toShown)}</output>
}

function toShown(_: string, value: unknown): unknown {
  if (!(value instanceof ServiceError)) return value
  const { code, message, details, status, signed } = value
  return { code, message, details, status, signed }
}
