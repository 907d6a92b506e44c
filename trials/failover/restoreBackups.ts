import { execFile } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { toPath } from '@countersign/testing/launcher'
import type { PostgresPair } from './postgresPair.ts'

export type RestoredBackups = {
  /** What `admin check` said of each, against the list of proofs that were there before. */
  dump: string
  archive: string
  /** Of the dump, in bytes. */
  dumpBytes: number
  faults: string[]
}

const AFTER_MS = 2_000

/**
 * Takes both kinds of backups under load, as docs/operations.md says it, restores them into an empty database and an empty server, and
 * looks for every proof.
 */
export async function restoreBackups(
  pair: PostgresPair,
  { folder, say }: { folder: string; say(line: string): void },
): Promise<RestoredBackups> {
  const url = () => pair.toUrl(pair.primaryPort())
  const lists = { dump: join(folder, 'before-dump'), archive: join(folder, 'before-archive') }
  const faults: string[] = []
  say('lists the proofs')
  await check(url(), ['--out', lists.dump])
  say('dumps the database')

  const backups = await pair.createFolder('backups')
  const dump = join(backups, 'countersign.dump')
  await pair.run('pg_dump', ['--format=custom', `--file=${dump}`, url()])
  say('copies the server')
  const copy = await pair.createFolder('copy')
  const data = join(copy, 'data')
  await pair.run('pg_basebackup', ['-d', pair.toReplication(), '-D', data, '-X', 'none', '-c', 'fast'])
  await pair.run('pg_verifybackup', ['--no-parse-wal', data])
  // What is signed from here on is in no copy, only in the archive.
  await wait(AFTER_MS)
  await check(url(), ['--out', lists.archive])
  say('waits for the archive')
  await pair.archiveAll()

  say('restores both')
  await pair.createDatabase('restored')
  const restored = pair.toUrl(pair.primaryPort(), 'restored')
  await pair.run('pg_restore', ['--exit-on-error', '--no-owner', `--dbname=${restored}`, dump])
  const port = await pair.startCopy(copy)
  const said = {
    dump: await check(restored, ['--against', lists.dump]).catch(toFault),
    archive: await check(pair.toUrl(port), ['--against', lists.archive]).catch(toFault),
  }
  return { ...said, dumpBytes: (await stat(dump)).size, faults }

  function toFault(error: Error): string {
    faults.push(error.message)
    return error.message
  }
}

/** As an operator runs it. */
async function check(databaseUrl: string, args: readonly string[]): Promise<string> {
  const argv = ['-C', 'source', toPath('services/coordinator/src/admin.ts'), 'check', ...args]
  const { stdout } = await promisify(execFile)(process.execPath, argv, {
    env: { PATH: process.env.PATH ?? '', DATABASE_URL: databaseUrl },
    maxBuffer: 1 << 26,
  })
  return stdout.trim().split('\n').join('; ')
}
