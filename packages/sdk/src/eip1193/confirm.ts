import type { Hex, TypedData, WalletInfo } from '@countersign/protocol'
import type { SignedEvent } from '../client/notifySigned.ts'
import type { Call } from '../client/parseSignRequest.ts'
import { Eip1193Error, eip1193Codes } from './errors.ts'

/** What a user is asked to sign. */
export type ConfirmRequest =
  | ({ kind: 'transaction'; from: Hex } & Call)
  | { kind: 'message'; from: Hex; message: Hex }
  | { kind: 'typed-data'; from: Hex; typedData: TypedData }

export type ConfirmOptions = {
  onConfirm?: ((request: ConfirmRequest) => boolean | Promise<boolean>) | undefined
  onSigned?: ((signed: SignedEvent) => void) | undefined
}

/** Throws 4001 unless the user agrees. The listener gets a copy: what it changes is not what is signed. */
export async function confirm(onConfirm: ConfirmOptions['onConfirm'], request: ConfirmRequest): Promise<void> {
  if (onConfirm && !(await onConfirm(structuredClone(request)))) {
    throw new Eip1193Error(eip1193Codes.userRejected, `the user rejected the ${WORDS[request.kind]}`)
  }
}

const WORDS = { transaction: 'transaction', message: 'message', 'typed-data': 'typed data' } as const

export function assertOwn(wallet: WalletInfo, from: Hex | undefined): void {
  if (from !== undefined && from.toLowerCase() !== wallet.address.toLowerCase()) {
    throw new Eip1193Error(eip1193Codes.unauthorized, `${from} is not the account of this wallet`)
  }
}
