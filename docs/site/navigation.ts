import { globSync } from 'node:fs'
import { basename, posix } from 'node:path'

/** A page: its Markdown in the repository, and its path below the root of the site. */
export type Source = { file: string; path: string }

type Group = { title: string; lead: string; sources: readonly Source[] }

const GROUPS: readonly [title: string, lead: string, files: readonly string[]][] = [
  ['Start', 'Run the whole service on your machine.', ['docs/start.md']],
  [
    'Build',
    'Add wallets, vaults and sign-in to your app.',
    ['sdk', 'vaults', 'agents-and-budgets', 'webhooks', 'sign-in', 'testing-your-app'].map(
      (name) => `docs/build/${name}.md`,
    ),
  ],
  [
    'Run',
    'Operate the service.',
    [
      'production',
      'root-secret',
      'deploy',
      'upgrade-and-backup',
      'monitoring-and-runbooks',
      'log-and-witness',
      'scaling-and-failover',
      'web-app',
    ].map((name) => `docs/run/${name}.md`),
  ],
  [
    'Verify',
    'Check a proof without trusting the service.',
    ['check-a-proof', 'monitor', 'by-hand'].map((name) => `docs/verify/${name}.md`),
  ],
  ['Security model', 'The parties, and what each can do.', ['docs/security-model.md']],
  [
    'Reference',
    'Settings, errors, formats and terms.',
    [
      'docs/api',
      'docs/run/configuration.md',
      'docs/errors.md',
      'packages/receipt/spec/receipt-v1.md',
      'packages/receipt/spec/receipt-v2.md',
      'packages/receipt/spec/anchor-v1.md',
      'packages/attestation/spec/evidence.md',
      'packages/log/spec/log-v1.md',
      'packages/policy/spec/policy-v1.md',
      'packages/protocol/spec/protocol.md',
      'docs/glossary.md',
      'docs/non-goals.md',
      'docs/performance.md',
    ],
  ],
  [
    'Contribute',
    'Change the code.',
    ['CONTRIBUTING.md', 'docs/contribute/architecture.md', 'docs/contribute/how-to-add.md', 'docs/decisions'],
  ],
]

/** Pages that are rendered from something other than one Markdown file. */
export const API_PAGE = 'docs/api'
export const DECISIONS_PAGE = 'docs/decisions'

/** `docs/build/sdk.md` becomes `build/sdk`, and `packages/log/spec/log-v1.md` becomes `spec/log-v1`. */
function toSource(file: string): Source {
  const path = file.replace(/\.md$/, '').toLowerCase()
  return { file, path: path.replace(/^docs\//, '').replace(/^packages\/[^/]+\//, '') }
}

/** The groups of the site in reading order, and the decision records. Throws if no group lists a page. */
export function readNavigation(root: string): { groups: Group[]; decisions: Source[] } {
  const files = globSync(['docs/**/*.md', 'packages/*/spec/*.md', 'CONTRIBUTING.md'], {
    cwd: root,
    exclude: (path) => ['node_modules', 'dist', 'site', 'screenshots'].includes(basename(path)),
  })
  const listed = new Set(GROUPS.flatMap(([, , names]) => names))
  const isDecision = (file: string) => posix.dirname(file) === DECISIONS_PAGE
  const unlisted = files.filter((file) => !listed.has(file) && !isDecision(file))
  if (unlisted.length > 0) throw new Error(`no group of docs/site/navigation.ts lists ${unlisted.join(', ')}`)
  return {
    groups: GROUPS.map(([title, lead, names]) => ({ title, lead, sources: names.map(toSource) })),
    decisions: files.filter(isDecision).toSorted().map(toSource),
  }
}
