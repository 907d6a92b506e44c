const LEVELS = ['patch', 'minor', 'major'] as const
type Level = (typeof LEVELS)[number]

export type Changeset = {
  /** By the name of the package. */
  levels: ReadonlyMap<string, Level>
  text: string
}

/**
 * A file of `.changeset/`, in the form of the changesets tool: the packages with their level between two lines of `---`, then the
 * sentence for their changelogs. Throws for anything else: a line that is not understood would be a change that nobody reads.
 */
export function parseChangeset(file: string, published: readonly string[]): Changeset {
  const [, head, body] = /^---\n(.*?)\n---\n(.*)$/s.exec(file) ?? []
  const text = body?.trim() ?? ''
  if (head === undefined || text === '') throw new Error('expected packages between two lines of ---, then a sentence')
  const levels = new Map<string, Level>()
  for (const line of head.split('\n')) {
    const [, name, level] = /^['"]([^'"]+)['"]: *(patch|minor|major)$/.exec(line) ?? []
    if (name === undefined) throw new Error(`expected "PACKAGE": ${LEVELS.join('|')}, not ${line}`)
    if (!published.includes(name)) throw new Error(`${name} is not published`)
    if (levels.has(name)) throw new Error(`${name} stands there twice`)
    levels.set(name, level as Level)
  }
  return { levels, text }
}

/** The version after all of them: the highest level decides, for every package. Before 1.0.0 a major change is a minor step. */
export function toNextVersion(version: string, changesets: readonly Changeset[]): string {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  const highest = Math.max(
    ...changesets.flatMap(({ levels }) => [...levels.values()].map((level) => LEVELS.indexOf(level))),
  )
  if (highest === 2 && major > 0) return `${major + 1}.0.0`
  if (highest >= 1) return `${major}.${minor + 1}.0`
  return `${major}.${minor}.${patch + 1}`
}

/** The changelog of a package with an entry for the version on top. */
export function toChangelog(
  changelog: string,
  { name, version }: { name: string; version: string },
  changesets: readonly Changeset[],
): string {
  const own = changesets.filter(({ levels }) => levels.has(name)).map(({ text }) => toItem(text))
  const items = own.length > 0 ? own : ['- No change of its own: released with the others.']
  const entry = `## ${version}\n\n${items.join('\n')}\n`
  const [title, ...rest] = changelog.split(/^(?=## )/m)
  return [`${title?.trimEnd()}\n\n`, `${entry}\n`, ...rest].join('').replace(/\n*$/, '\n')
}

const toItem = (text: string) => `- ${text.replaceAll('\n', '\n  ')}`
