import { stat } from 'node:fs/promises'
import { describeFault, settingNames } from '@countersign/service'
import { type Check, type Context, type Finding, fault, ok, skipped, warning } from './check.ts'

/** The settings themselves: what the service would say at its start, and what it cannot know. */
export function createConfigurationChecks(context: Context): Check[] {
  const { subject } = context
  return [
    {
      name: 'configuration',
      async run() {
        if (subject.faults.length > 0) return subject.faults.map((each) => fault(describeFault(each), each.fix))
        const { coordinator, isProduction } = subject
        const mode = coordinator?.isMock ? 'simulated silicon' : isProduction ? 'production' : 'not production'
        const hash = coordinator === undefined ? '' : `, configuration hash ${coordinator.configHash}`
        return ok(`the ${subject.role} can start with it (${mode})${hash}`)
      },
    },
    { name: 'secrets', run: () => checkSecrets(context) },
    { name: 'publishing', settings: /^(WORKER|RPC_URL)$/, run: async () => checkPublishing(context) },
  ]
}

/** Files of secrets that anybody on the machine can read, and secrets that any child process inherits. */
async function checkSecrets({ env, subject }: Context): Promise<Finding[]> {
  const isOurs = (name: string) => settingNames.includes(name) || name.startsWith('OIDC_')
  const isSecret = (name: string) => isOurs(name) && /(_SECRET|_PRIVATE_KEY|_TOKEN|^DATABASE_URL)$/.test(name)
  const files = Object.keys(env).filter((name) => name.endsWith('_FILE') && isSecret(name.slice(0, -5)) && env[name])
  const found: Finding[] = []
  for (const name of files.toSorted()) {
    // One that cannot be read is a fault of the configuration.
    const mode = (await stat(env[name] ?? '').catch(() => undefined))?.mode ?? 0
    if ((mode & 0o007) !== 0) {
      found.push(
        warning(
          `${name}: every user of this machine can read the file`,
          'Give it mode 0400, and the user that reads it.',
        ),
      )
    }
  }
  if (subject.isProduction) {
    const byValue = Object.keys(env).filter((name) => isSecret(name) && env[name] && name !== 'ROOT_SECRET')
    for (const name of byValue.toSorted()) {
      found.push(
        warning(`${name} is in the environment`, `Put it into a file of mode 0400, and name that in ${name}_FILE.`),
      )
    }
  }
  if (found.length > 0) return found
  return [files.length === 0 ? skipped('no secret is in a file') : ok(`${files.length} in files, for their user only`)]
}

function checkPublishing({ env, subject }: Context): Finding {
  if (subject.pipeline !== undefined) return ok(`this ${subject.role} publishes`)
  if (env.WORKER === 'off') return skipped('WORKER=off: workers publish, and need a look of their own (--worker)')
  return warning(
    'RPC_URL is not set: this coordinator publishes nothing, and proofs wait',
    'Set RPC_URL, CHAIN_ID, ATTESTATIONS_ADDRESS and the publisher’s key here, or WORKER=off and start workers.',
  )
}
