import type { Hex } from '@countersign/protocol'

/** What a node answers as an error; thrown, so that no handler needs to pass it on. */
export class RpcError extends Error {
  override name = 'RpcError'
  readonly code: number
  readonly data: Hex | undefined
  constructor(code: number, message: string, data?: Hex) {
    super(message)
    this.code = code
    this.data = data
  }
}
