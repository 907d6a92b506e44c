import { execFile } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { toPath } from '@countersign/testing/launcher'
import type { PostgresPair } from './postgresPair.ts'

const AFTER_MS = 2_000

/**
 * Takes both kinds of backups under load, as docs/run/upgrade-and-backup.md describes, restores them into an empty database and an empty
 * server, and checks that every proof is there. Returns the faults.
 */
export async function restoreBackups(
  pair: PostgresPair,
  { folder, say }: { folder: string; say(line: string): void },
): Promise<string[]> {
  const url = () => pair.toUrl(pair.primaryPort())
  const lists = { dump: join(folder, 'before-dump'), archive: join(folder, 'before-archive') }
  const faults: string[] = []
  say('listing the proofs')
  await check(url(), ['--out', lists.dump])
  say('dumping the database')

  const backups = await pair.createFolder('backups')
  const dump = join(backups, 'countersign.dump')
  await pair.run('pg_dump', ['--format=custom', `--file=${dump}`, url()])
  say('copying the server')
  const copy = await pair.createFolder('copy')
  const data = join(copy, 'data')
  await pair.run('pg_basebackup', ['-d', pair.toReplication(), '-D', data, '-X', 'none', '-c', 'fast'])
  await pair.run('pg_verifybackup', ['--no-parse-wal', data])
  // Signatures from here on are only in the archive.
  await wait(AFTER_MS)
  await check(url(), ['--out', lists.archive])
  say('waiting for the archive')
  await pair.archiveAll()

  say('restoring both')
  await pair.createDatabase('restored')
  const restored = pair.toUrl(pair.primaryPort(), 'restored')
  await pair.run('pg_restore', ['--exit-on-error', '--no-owner', `--dbname=${restored}`, dump])
  const port = await pair.startCopy(copy)
  const checks = [
    [`dump of ${(await stat(dump)).size} bytes, restored into an empty database`, restored, lists.dump],
    ['copy and archive, restored into an empty server', pair.toUrl(port), lists.archive],
  ] as const
  for (const [name, databaseUrl, list] of checks) {
    const output = await check(databaseUrl, ['--against', list]).catch((error: Error) => {
      faults.push(`${name}: ${error.message}`)
      return error.message
    })
    say(`${name}: ${output}`)
  }
  return faults
}

/** Runs the admin command as an operator would. */
async function check(databaseUrl: string, args: readonly string[]): Promise<string> {
  const argv = ['-C', 'source', toPath('services/coordinator/src/admin.ts'), 'check', ...args]
  const { stdout } = await promisify(execFile)(process.execPath, argv, {
    env: { PATH: process.env.PATH ?? '', DATABASE_URL: databaseUrl },
    maxBuffer: 1 << 26,
  })
  return stdout.trim().split('\n').join('; ')
}
