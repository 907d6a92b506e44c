const LEVELS = ['patch', 'minor', 'major'] as const
type Level = (typeof LEVELS)[number]

export type Changeset = {
  /** By the name of the package. */
  levels: ReadonlyMap<string, Level>
  text: string
}

/**
 * Parses a file of `.changeset/`, in the format of the changesets tool: packages with their level between two lines of `---`, then the
 * sentence for their changelogs. Throws for anything else, so that no change is lost.
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
    if (levels.has(name)) throw new Error(`${name} is listed twice`)
    levels.set(name, level as Level)
  }
  return { levels, text }
}

/** The next version of all packages, from the highest level. Before 1.0.0 a major change raises the minor version. */
export function toNextVersion(version: string, changesets: readonly Changeset[]): string {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  const highest = Math.max(
    ...changesets.flatMap(({ levels }) => [...levels.values()].map((level) => LEVELS.indexOf(level))),
  )
  if (highest === 2 && major > 0) return `${major + 1}.0.0`
  if (highest >= 1) return `${major}.${minor + 1}.0`
  return `${major}.${minor}.${patch + 1}`
}

/** Adds an entry for the version at the top of the package's changelog. */
export function toChangelog(
  changelog: string,
  { name, version }: { name: string; version: string },
  changesets: readonly Changeset[],
): string {
  const own = changesets.filter(({ levels }) => levels.has(name)).map(({ text }) => toItem(text))
  const items = own.length > 0 ? own : ['- No changes. Released with the other packages.']
  const entry = `## ${version}\n\n${items.join('\n')}\n`
  const [title, ...rest] = changelog.split(/^(?=## )/m)
  return [`${title?.trimEnd()}\n\n`, `${entry}\n`, ...rest].join('').replace(/\n*$/, '\n')
}

const toItem = (text: string) => `- ${text.replaceAll('\n', '\n  ')}`
