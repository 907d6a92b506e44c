import type { Log } from '@countersign/service'
import type { ReadBlock } from '../ports.ts'
import type { ReceiptSource } from './config.ts'
import { createGatewayReader } from './gatewayReader.ts'
import { createKuboPinner } from './kubo.ts'
import { PinError } from './pinError.ts'

export type CreateReadBlockParameters = {
  source: ReceiptSource | undefined
  hasPipeline: boolean
  /** What the pipeline of this process pins to, once it has started. */
  whenStarted(): Promise<ReadBlock | undefined>
  log?: Pick<Log, 'warn'>
}

/** Where a coordinator reads receipts from IPFS: what it pins to itself, or else what its settings name. Undefined where it has neither. */
export function createReadBlock({
  source,
  hasPipeline,
  whenStarted,
  log,
}: CreateReadBlockParameters): ReadBlock | undefined {
  if (hasPipeline) {
    return async (cid, options) => {
      const readBlock = await whenStarted()
      if (readBlock === undefined) throw new PinError('pin_unavailable', { details: 'not started' })
      return readBlock(cid, options)
    }
  }
  if (source === undefined) {
    // Whether workers drop receipts, only their settings say.
    log?.warn({
      msg: 'This coordinator cannot read receipts that leave the database: with RECEIPT_RETENTION_D old proofs would be unavailable',
      reason: 'neither IPFS_GATEWAY_URL nor IPFS_PINNER=kubo with IPFS_API_URL is set',
    })
    return undefined
  }
  if (source.kind === 'gateway') return createGatewayReader({ gatewayUrl: source.gatewayUrl, fetch })
  return createKuboPinner({ ...source, fetch }).read
}
