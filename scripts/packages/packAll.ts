import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { toTarball } from './findTarballs.ts'
import type { Packed, PublishedPackage } from './readPublished.ts'

const run = promisify(execFile)

/** Builds and packs into a folder, like `npm publish`. Returns the packages with their tarballs, in the given order. */
export async function packAll(
  root: string,
  { packages, folder }: { packages: readonly PublishedPackage[]; folder: string },
): Promise<Packed[]> {
  await mkdir(folder, { recursive: true })
  const packed: Packed[] = []
  // npm fails if its cache in the home folder can't be written.
  const cache = await mkdtemp(join(tmpdir(), 'countersign-pack-'))
  try {
    // One at a time, because each `prepack` also builds the packages below.
    for (const one of packages) {
      const { name } = one.manifest
      const tarball = toTarball(folder, one.manifest)
      await rm(tarball, { force: true })
      const args = ['pack', '--pack-destination', folder, '--cache', cache, '--loglevel=error']
      await run('npm', args, { cwd: join(root, one.folder) }).catch((error: { stdout?: string; stderr?: string }) => {
        throw new Error(`${name} could not be packed:\n${error.stdout}${error.stderr}`)
      })
      packed.push({ ...one, tarball })
    }
    return packed
  } finally {
    await rm(cache, { recursive: true, force: true })
  }
}
