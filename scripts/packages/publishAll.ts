import type { Packed } from './readPublished.ts'

const REGISTRY = 'https://registry.npmjs.org/'

export type PublishDeps = {
  /** Runs npm; whether it ended with 0. */
  runNpm(args: readonly string[], env: NodeJS.ProcessEnv): boolean
  env: NodeJS.ProcessEnv
  /** Whether everything in the checkout is committed. */
  isClean(): boolean
  /** Files of `.changeset/` that no version has yet. */
  waiting: readonly string[]
  say(text: string): void
}

/** Publishes, each after what it depends on. What the registry has is left out, so that a release that was cut short can be repeated. */
export function publishAll(deps: PublishDeps, packed: readonly Packed[]): void {
  const { NPM_TOKEN: token, ...env } = deps.env
  // GitHub gives this to a job that may ask for an identity, and npm takes that for a token, where it trusts the workflow.
  const isTrusted = Boolean(env.ACTIONS_ID_TOKEN_REQUEST_URL)
  if (!token && !isTrusted)
    throw new Error('NPM_TOKEN is not set, and this is no trusted publisher: nothing was published')
  if (!deps.isClean()) throw new Error('not everything is committed: nothing was published')
  if (deps.waiting.length > 0) throw new Error('changesets wait for a version (--bump): nothing was published')
  // By the environment: arguments can be read by everybody on the machine. It is a token for this registry and no other.
  const withToken = !token ? env : { ...env, [`npm_config_${REGISTRY.replace('https:', '')}:_authToken`]: token }
  for (const { manifest, tarball } of packed) {
    const id = `${manifest.name}@${manifest.version}`
    if (deps.runNpm(['view', id, 'version', '--registry', REGISTRY], env)) {
      deps.say(`${id} was published before`)
      continue
    }
    if (!deps.runNpm(['publish', tarball, '--registry', REGISTRY], withToken))
      throw new Error(`${id} was not published`)
    deps.say(`${id} is published`)
  }
}
