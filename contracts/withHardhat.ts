import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadHardhat } from '@countersign/testing/hardhat'
import type { HardhatRuntimeEnvironment } from 'hardhat/types/hre'

/**
 * Hardhat on this folder, for as long as `use` takes. What it builds goes to a folder of its own, so that a checkout may be
 * read-only and two runs do not meet.
 */
export async function withHardhat<Result>(
  use: (hardhat: HardhatRuntimeEnvironment) => Promise<Result>,
): Promise<Result> {
  const { createHardhatRuntimeEnvironment } = await loadHardhat()
  const { default: config } = await import('./hardhat.config.ts')
  const folder = await mkdtemp(join(tmpdir(), 'countersign-contracts-'))
  try {
    const paths = { ...config.paths, artifacts: join(folder, 'artifacts'), cache: join(folder, 'cache') }
    return await use(await createHardhatRuntimeEnvironment({ ...config, paths }, {}, import.meta.dirname))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
