import type { GivenFile } from './loadCollateral.ts'

/** Whether a file should be a CAR with the blocks of a receipt: by its name, or by the first bytes of its header, with which no JSON begins. */
export function isCar({ name, bytes }: GivenFile): boolean {
  return /\.car$/i.test(name) || (bytes[0] === 0x3a && bytes[1] === 0xa2)
}
