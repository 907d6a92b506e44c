import { readFileSync } from 'node:fs'

/** Prints a backup of the root secret, which is public: `readBackup.ts [NAME]`, a file in /backup. */
const [name = 'root-backup.json'] = process.argv.slice(2)
if (!/^[\w-]+\.json$/.test(name)) {
  process.stderr.write('read-backup: expected the name of a JSON file in /backup\n')
  process.exit(2)
}
process.stdout.write(readFileSync(`/backup/${name}`))
