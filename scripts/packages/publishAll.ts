import { execFileSync, spawnSync } from 'node:child_process'
import { listChangesets } from './applyChangesets.ts'
import type { Packed } from './readPublished.ts'

export type PublishDeps = {
  /** Runs npm and returns whether it exited with 0. */
  runNpm(args: readonly string[], env: NodeJS.ProcessEnv): boolean
  /** Reads a value of npm's configuration; undefined if it is not set. */
  readNpmConfig(name: string): string | undefined
  env: NodeJS.ProcessEnv
  /** Whether everything in the checkout is committed. */
  isClean(): boolean
  /** The unreleased files of `.changeset/`. */
  waiting: readonly string[]
  say(text: string): void
}

/** The commands for publishing from the checkout at `root`. */
export function createPublishDeps(root: string): PublishDeps {
  // Only the publish command gets the token.
  const { NPM_TOKEN: _, ...env } = process.env
  const read = (command: string, args: readonly string[]) =>
    execFileSync(command, args, { cwd: root, env, encoding: 'utf8' })
  return {
    runNpm: (args, env) =>
      spawnSync('npm', args, { cwd: root, env, stdio: ['ignore', 'ignore', 'inherit'] }).status === 0,
    readNpmConfig(name) {
      const value = read('npm', ['config', 'get', name]).trim()
      return value === 'undefined' ? undefined : value
    },
    env: process.env,
    isClean: () => read('git', ['status', '--porcelain']) === '',
    waiting: listChangesets(root),
    say: console.log,
  }
}

/** Publishes each package after its dependencies. Skips versions that the registry has, so that an interrupted release can be repeated. */
export function publishAll(deps: PublishDeps, packed: readonly Packed[]): void {
  const { NPM_TOKEN: token, ...env } = deps.env
  // GitHub sets this for jobs that may request an identity. npm accepts that identity instead of a token if it trusts the workflow.
  const isTrusted = Boolean(env.ACTIONS_ID_TOKEN_REQUEST_URL)
  if (!token && !isTrusted) throw new Error('not published: NPM_TOKEN is not set, and this is not a trusted publisher')
  if (!deps.isClean()) throw new Error('not published: the checkout has uncommitted changes')
  if (deps.waiting.length > 0) throw new Error('not published: there are unreleased changesets (use --bump)')
  // In the environment, because anyone on the machine can read arguments. npm sends the token only to the registry that it publishes to.
  const withToken = !token ? env : { ...env, [`npm_config_${toCredentialsKey(deps, packed)}:_authToken`]: token }
  for (const { manifest, tarball } of packed) {
    const id = `${manifest.name}@${manifest.version}`
    if (deps.runNpm(['view', id, 'version'], env)) {
      deps.say(`${id} was published before`)
      continue
    }
    if (!deps.runNpm(['publish', tarball], withToken)) throw new Error(`${id} was not published`)
    deps.say(`${id} is published`)
  }
}

/** npm's credentials key for the registry of our packages: the address without its scheme, with a trailing slash. */
function toCredentialsKey(deps: PublishDeps, [first]: readonly Packed[]): string {
  const [scope] = first?.manifest.name.split('/') ?? []
  const registry = deps.readNpmConfig(`${scope}:registry`) ?? deps.readNpmConfig('registry')
  if (registry === undefined) throw new Error('not published: the npm configuration has no registry')
  const { host, pathname } = new URL(registry)
  return `//${host}${pathname.replace(/\/*$/, '/')}`
}
