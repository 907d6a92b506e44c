import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ReleaseRecord, readAppCompose } from '@countersign/verify'
import { readPublished } from '../packages/readPublished.ts'
import { appendRecord } from './releaseFolder.ts'
import type { ReleaseKey } from './releaseKey.ts'

export type TaggedCommit = Pick<ReleaseRecord, 'release' | 'commit' | 'tree'>

/** HEAD, if it has the tag of the packages' version. Throws if the working tree has changes. */
export function findTaggedCommit(root: string): TaggedCommit | undefined {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  const release = readPublished(root)[0]?.manifest.version ?? ''
  if (!git('tag', '--points-at', 'HEAD').split('\n').includes(`v${release}`)) return undefined
  const changes = git('status', '--porcelain')
  if (changes !== '') throw new Error(`the working tree has changes:\n${changes}`)
  return { release, commit: git('rev-parse', 'HEAD'), tree: git('rev-parse', 'HEAD^{tree}') }
}

type RecordReleaseDeps = {
  now: () => Date
  /** Creates the files of the release from the checkout. */
  createParts(root: string): Promise<Pick<ReleaseRecord, 'images' | 'verifiers'>>
}

/** Appends the record of a tagged commit to the log of releases in `folder`. */
export async function recordRelease(
  { now, createParts }: RecordReleaseDeps,
  { root, commit, folder, key }: { root: string; commit: TaggedCommit; folder: string; key: ReleaseKey },
): Promise<void> {
  const { template } = readAppCompose(readFileSync(join(root, 'deploy/dstack/app-compose.json')))
  const parts = await createParts(root)
  await appendRecord(folder, { ...commit, recordedAt: now().toISOString(), ...parts, compose: template }, key)
}
