import { describe, expect, test } from 'vitest'
import { findFaults, REPOSITORY } from './findFaults.ts'
import type { Manifest, PublishedPackage } from './readPublished.ts'

const LICENSE = 'the licence'

const manifest: Manifest = {
  name: '@countersign/log',
  version: '1.2.3',
  description: 'A log.',
  license: 'AGPL-3.0-only',
  homepage: `${REPOSITORY}/tree/main/packages/log#readme`,
  bugs: `${REPOSITORY}/issues`,
  repository: { type: 'git', url: `git+${REPOSITORY}.git`, directory: 'packages/log' },
  scripts: { prepack: 'node ../../scripts/bootstrap.mjs node ../../scripts/prepack.ts' },
  dependencies: { '@countersign/protocol': '1.2.3', '@noble/hashes': '^2.4.0', canonicalize: '5.1.0' },
  peerDependencies: { viem: '^2.57' },
  engines: { node: '>=22' },
  publishConfig: { access: 'public', provenance: true },
}
const files: Record<string, string> = { 'README.md': '# Log', LICENSE, 'CHANGELOG.md': '# Log\n\n## 1.2.3\n\n- New.\n' }
const protocol: PublishedPackage = {
  folder: 'packages/protocol',
  manifest: { ...manifest, name: '@countersign/protocol', dependencies: {} },
}

function find(change: Partial<Manifest>, changedFiles: Record<string, string | undefined> = {}): string[] {
  const one = { folder: 'packages/log', manifest: { ...manifest, ...change } }
  const read = (name: string) => ({ ...files, ...changedFiles })[name]
  return findFaults(one, { read, license: LICENSE }, [protocol, one])
}

test('accepts a complete package', () => {
  expect(find({})).toEqual([])
})

describe('rejects a package', () => {
  test.each<[string, Partial<Manifest>, RegExp]>([
    ['with a different version', { version: '1.2.4' }, /version is 1\.2\.4/],
    ['without a description', { description: ' ' }, /no description/],
    ['under another licence', { license: 'MIT' }, /license/],
    ['with the homepage of another', { homepage: `${REPOSITORY}/tree/main/packages/sdk#readme` }, /homepage/],
    ['with bugs elsewhere', { bugs: 'https://example.com' }, /bugs/],
    ['in another folder of the repository', { repository: { ...manifest.repository, directory: 'x' } }, /repository/],
    ['without a build', { scripts: {} }, /prepack/],
    ['for any Node', { engines: { node: '*' } }, /engines/],
    ['for some only', { publishConfig: { access: 'restricted', provenance: true } }, /access public/],
    ['without provenance', { publishConfig: { access: 'public' } }, /provenance/],
    ['with one version of a library', { dependencies: { zod: '4.6.7' } }, /zod: expected a range/],
    ['with any later version of a library', { dependencies: { zod: '>=4' } }, /zod: expected a range/],
    ['with a range of what writes bytes', { dependencies: { canonicalize: '^5.1.0' } }, /canonicalize: .*exact/],
    ['with a range of ours', { dependencies: { '@countersign/protocol': '^1.2.3' } }, /exactly 1\.2\.3/],
    ['on a private one of ours', { dependencies: { '@countersign/testing': '1.2.3' } }, /not published/],
    ['with a peer without an upper bound', { peerDependencies: { react: '>=19' } }, /peer react/],
  ])('%s', (_, change, fault) => {
    expect(find(change).join('\n')).toMatch(fault)
  })

  test.each<[string, string, string | undefined, RegExp]>([
    ['without a README', 'README.md', undefined, /no README/],
    ['without the licence', 'LICENSE', undefined, /LICENSE/],
    ['with another licence', 'LICENSE', 'another', /LICENSE/],
    ['without a changelog', 'CHANGELOG.md', undefined, /CHANGELOG/],
    ['with a changelog of another version', 'CHANGELOG.md', '# Log\n\n## 1.2.30\n', /no entry of 1\.2\.3$/],
  ])('%s', (_, name, text, fault) => {
    expect(find({}, { [name]: text })).toEqual([expect.stringMatching(fault)])
  })
})
