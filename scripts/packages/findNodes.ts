import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Node versions for testing published packages: those of scripts/engines, installed at first use, and this one. */
export async function findNodes(): Promise<Map<string, string>> {
  const folder = join(import.meta.dirname, '../engines')
  const { optionalDependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const wanted = Object.entries(optionalDependencies as Record<string, string>).filter(([name]) =>
    name.endsWith(`-${process.platform}-${process.arch}`),
  )
  const nodes = wanted.map(([name, alias]): [string, string] => [
    alias.slice(alias.lastIndexOf('@') + 1),
    join(folder, 'node_modules', name, 'bin/node'),
  ])
  if (!nodes.every(([, path]) => existsSync(path)))
    await promisify(execFile)('npm', ['ci', '--prefer-offline'], { cwd: folder })
  return new Map([...nodes, [process.versions.node, process.execPath]])
}
