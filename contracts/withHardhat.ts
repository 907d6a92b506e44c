import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadHardhat } from '@countersign/testing/hardhat'
import type { HardhatRuntimeEnvironment } from 'hardhat/types/hre'

/** Runs Hardhat on this folder. Builds into a temporary folder, so that the checkout may be read-only and concurrent runs don't conflict. */
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
