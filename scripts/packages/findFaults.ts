import type { Manifest, PublishedPackage } from './readPublished.ts'

export const REPOSITORY = 'https://github.com/countersign/countersign'

/** It encodes the bytes that are hashed and signed, so its updates need a release of ours. */
const PINNED = new Set(['canonicalize'])

export type PackageFiles = {
  /** Reads a file of the package; undefined if it is missing. */
  read(name: string): string | undefined
  /** The licence of the repository. */
  license: string
}

/** Lists the reasons why a package can't be published. `published`: all published packages, including this one. */
export function findFaults(
  { folder, manifest }: PublishedPackage,
  { read, license }: PackageFiles,
  published: readonly PublishedPackage[],
): string[] {
  const { name, version } = manifest
  const first = published[0]?.manifest.version
  const rules: [boolean, string][] = [
    [version === first, `its version is ${version}, that of the others ${first}: all are released together`],
    [isText(manifest.description), 'no description'],
    [manifest.license === 'AGPL-3.0-only', 'license: expected AGPL-3.0-only'],
    [manifest.homepage === `${REPOSITORY}/tree/main/${folder}#readme`, 'homepage: expected its README'],
    [manifest.bugs === `${REPOSITORY}/issues`, `bugs: expected ${REPOSITORY}/issues`],
    [isRepository(manifest, folder), `repository: expected git+${REPOSITORY}.git with the directory ${folder}`],
    [
      /scripts\/(?:prepack\.ts$|bundle\.ts )/.test(manifest.scripts?.prepack ?? ''),
      'prepack: expected scripts/prepack.ts or bundle.ts, which builds',
    ],
    [/^>=\d+(\.\d+)*$/.test(manifest.engines?.node ?? ''), 'engines: expected the least Node, as >=22'],
    [manifest.publishConfig?.access === 'public', 'publishConfig: expected access public'],
    [manifest.publishConfig?.provenance === true, 'publishConfig: expected provenance'],
    [isText(read('README.md')), 'no README.md'],
    [read('LICENSE') === license, 'LICENSE: expected the one of the repository'],
    [hasEntry(read('CHANGELOG.md'), version), `CHANGELOG.md: no entry of ${version}`],
  ]
  const faults = rules.filter(([holds]) => !holds).map(([, fault]) => fault)
  return [...faults, ...findDependencyFaults(manifest, published)].map((fault) => `${name}: ${fault}`)
}

function findDependencyFaults(manifest: Manifest, published: readonly PublishedPackage[]): string[] {
  const versions = new Map(published.map((one) => [one.manifest.name, one.manifest.version]))
  const dependencies = Object.entries(manifest.dependencies ?? {}).flatMap(([name, range]) => {
    if (name.startsWith('@countersign/')) {
      if (!versions.has(name)) return [`depends on ${name}, which is not published`]
      // They share exact bytes and are only tested with each other's version.
      return versions.get(name) === range ? [] : [`${name}: expected exactly ${versions.get(name)}`]
    }
    if (PINNED.has(name)) return /^\d+\.\d+\.\d+$/.test(range) ? [] : [`${name}: expected one exact version`]
    return isCaret(range) ? [] : [`${name}: expected a range as ^1.2.3, so that an app has one copy`]
  })
  const peers = Object.entries(manifest.peerDependencies ?? {}).filter(([, range]) => !isCaret(range))
  return [...dependencies, ...peers.map(([name]) => `peer ${name}: expected a range with an upper bound, as ^1.2`)]
}

const isCaret = (range: string) => /^\^\d+(\.\d+){0,2}$/.test(range)
const isText = (text: string | undefined) => text !== undefined && text.trim() !== ''

function isRepository({ repository }: Manifest, folder: string): boolean {
  return repository?.type === 'git' && repository.url === `git+${REPOSITORY}.git` && repository.directory === folder
}

function hasEntry(changelog: string | undefined, version: string): boolean {
  return changelog?.split('\n').includes(`## ${version}`) ?? false
}
