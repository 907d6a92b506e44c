import { assertBlock, PinError, type PinErrorCode } from '../../services/coordinator/src/publish/ipfs/pinError.ts'
import type { Block, Pinner } from '../../services/coordinator/src/publish/ipfs/pinner.ts'
import type { PinFault } from './commands.ts'

/** An error that isn't the port's. */
export class InjectedError extends TypeError {
  override name = 'InjectedError'
}

/** A pin service in memory with all failures of the port. */
export function createMemoryPinner() {
  const blocks = new Map<string, Block['bytes']>()
  let fault: PinFault | undefined
  let outage: PinErrorCode | undefined
  let calls = 0

  async function answer<Result>(signal: AbortSignal, work: () => Result, forgotten: () => Result): Promise<Result> {
    calls += 1
    if (outage !== undefined) throw new PinError(outage)
    if (fault?.at !== calls) return work()
    if (fault.code === 'forgets') return forgotten()
    if (fault.isLate) work()
    if (fault.code === 'silent') {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      throw new PinError('pin_unavailable')
    }
    if (fault.code === 'unknown') throw new InjectedError('injected adapter error')
    if (fault.code !== 'other_bytes') throw new PinError(fault.code)
    const result = work()
    return (result instanceof Uint8Array ? new Uint8Array(result.length) : result) as Result
  }

  const throwNotFound = () => {
    throw new PinError('pin_not_found')
  }
  const pinner: Pick<Pinner, 'pin' | 'read'> = {
    pin: (block, { signal }) =>
      answer(
        signal,
        () => {
          assertBlock(block)
          blocks.set(block.cid, block.bytes)
        },
        // Reports success without storing the block.
        () => {},
      ),
    read: (cid, { signal }) => answer(signal, () => blocks.get(cid) ?? throwNotFound(), throwNotFound),
  }
  return {
    pinner,
    blocks,
    setFault(next: PinFault | undefined) {
      fault = next
      calls = 0
    },
    setOutage(next: PinErrorCode | undefined) {
      outage = next
    },
  }
}
