import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseChangeset, toChangelog, toNextVersion } from './changesets.ts'
import { readPublished } from './readPublished.ts'

/** The unreleased files of `.changeset/`. */
export function listChangesets(root: string): string[] {
  const folder = join(root, '.changeset')
  const names = readdirSync(folder).filter((name) => name.endsWith('.md') && name !== 'README.md')
  return names.toSorted().map((name) => join(folder, name))
}

/** Turns the changesets into the next version of all published packages, with their changelogs, and removes them. Returns the version. */
export function applyChangesets(root: string): string {
  const published = readPublished(root)
  const names = published.map(({ manifest }) => manifest.name)
  const files = listChangesets(root)
  const current = published[0]?.manifest.version
  if (files.length === 0 || current === undefined) throw new Error('there is no changeset in .changeset/')
  const changesets = files.map((path) => {
    try {
      return parseChangeset(readFileSync(path, 'utf8'), names)
    } catch (error) {
      throw new Error(`${path}: ${(error as Error).message}`)
    }
  })
  const version = toNextVersion(current, changesets)
  for (const { folder, manifest } of published) {
    const path = join(root, folder, 'CHANGELOG.md')
    writeFileSync(path, toChangelog(readFileSync(path, 'utf8'), { name: manifest.name, version }, changesets))
  }
  for (const path of listManifests(root)) {
    writeFileSync(path, toManifest(readFileSync(path, 'utf8'), { names, version }))
  }
  for (const path of files) rmSync(path)
  execFileSync('npm', ['install', '--package-lock-only', '--ignore-scripts'], { cwd: root, stdio: 'inherit' })
  return version
}

/** The manifests of all packages and examples, which may name a published package. */
function listManifests(root: string): string[] {
  const { workspaces } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { workspaces: string[] }
  const folders = [...workspaces, 'examples/*'].flatMap((pattern) => {
    if (!pattern.endsWith('/*')) return [pattern]
    const parent = pattern.slice(0, -2)
    const entries = readdirSync(join(root, parent), { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => `${parent}/${name}`)
  })
  return folders.map((folder) => join(root, folder, 'package.json'))
}

/** A package.json with the new version of each published package. The rest of its text stays. */
export function toManifest(text: string, { names, version }: { names: readonly string[]; version: string }): string {
  const { name } = JSON.parse(text)
  const moved = names.reduce(
    (current, one) => current.replace(new RegExp(`("${one}": *)"[^"]*"`), `$1"${version}"`),
    text,
  )
  return names.includes(name) ? moved.replace(/("version": *)"[^"]*"/, `$1"${version}"`) : moved
}
