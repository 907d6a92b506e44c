import { equalBytes } from '@countersign/protocol'
import { PinError } from './ipfs/pinError.ts'
import type { Block, Pinner } from './ipfs/pinner.ts'

/** Pins a block, and reads it back from where it is held. */
export async function pinBlock(pinner: Pick<Pinner, 'pin' | 'read'>, block: Block, signal: AbortSignal): Promise<void> {
  await pinner.pin(block, { signal })
  const held = await pinner.read(block.cid, { signal })
  if (!equalBytes(held, block.bytes)) throw new PinError('pin_mismatch', { details: 'other bytes' })
}
