import { posix } from 'node:path'
import { checkLaunch, findForeign } from './checkLaunch.ts'
import {
  CONFIGFS,
  type Container,
  DSTACK_AGENT,
  imageOf,
  isDoctor,
  isPinned,
  isSecretName,
  isStandIn,
} from './containers.ts'

/** The members of a Compose file that the rules look at; the schema has looked at the rest. */
export type Compose = {
  services: Record<string, ComposeService>
  secrets?: Record<string, { file: string }>
  volumes?: Record<string, unknown>
}

type ComposeService = {
  image: string
  user?: string
  command?: string[]
  environment?: Record<string, string>
  read_only?: boolean
  cap_drop?: string[]
  security_opt?: string[]
  pids_limit?: number
  restart?: string
  stop_grace_period?: string
  network_mode?: string
  secrets?: string[]
  volumes?: string[]
  healthcheck?: { test?: string[]; disable?: boolean }
  depends_on?: Record<string, { condition: string }>
  deploy?: { resources?: { limits?: { cpus?: string; memory?: string } } }
}

/** What a confidential guest has for its programs. */
const OF_THE_GUEST = [CONFIGFS, DSTACK_AGENT, '/dstack/.host-shared/.user-config']

export type ComposeContext = {
  /** Whether a path, from the Compose file, is there. */
  isThere(path: string): boolean
}

/** What a service of ours is described by. Not `entrypoint`, `env_file`, `working_dir`, hooks: its image says what is started, and where. */
const OUR_MEMBERS = [
  'profiles',
  'image',
  'command',
  'user',
  'environment',
  'read_only',
  'cap_drop',
  'security_opt',
  'pids_limit',
  'restart',
  'logging',
  'network_mode',
  'depends_on',
  'stop_grace_period',
  'ports',
  'secrets',
  'volumes',
  'healthcheck',
  'deploy',
]
/** What others need besides. Not `privileged`, `pid` or `devices`: they share the guest with ours. */
const MEMBERS_OF_OTHERS = [...OUR_MEMBERS, 'stop_signal', 'tmpfs', 'shm_size']
const SECURITY_OPTIONS = ['no-new-privileges:true', 'apparmor=unconfined']

/** Our own rules for Compose files. One sentence for each fault. */
export function checkCompose(compose: Compose, context: ComposeContext): string[] {
  const { services, secrets, volumes, ...others } = compose
  const foreign = Object.keys(others).flatMap((name) => (name.startsWith('x-') ? [] : [`${name} is not provided for`]))
  for (const [name, volume] of Object.entries(volumes ?? {})) {
    // With options it can be any folder of the machine.
    if (volume !== null) foreign.push(`${name} is more than a volume`)
  }
  const found = Object.entries(services).flatMap(([name, service]) => {
    const faults = [
      ...checkStart(name, service),
      ...checkHardening(service),
      ...checkMounts(compose, service, context),
      ...checkWaiting(compose, service),
    ]
    return faults.map((fault) => `${name}: ${fault}`)
  })
  return [...foreign, ...found]
}

function checkStart(name: string, service: ComposeService): string[] {
  const isOurs = imageOf(service) !== undefined
  const faults = checkLaunch(toContainer(name, service))
  faults.push(...findForeign(service, isOurs ? OUR_MEMBERS : MEMBERS_OF_OTHERS))
  if (isOurs && service.healthcheck?.test !== undefined) {
    faults.push('its health is asked by something else than its image')
  }
  return faults
}

function checkHardening(service: ComposeService): string[] {
  const faults: string[] = []
  if (!isPinned(service.image)) faults.push('its image is not pinned')
  if (service.read_only !== true) faults.push('its root can be written to')
  if (service.cap_drop?.join() !== 'ALL') faults.push('it keeps capabilities')
  if (!service.security_opt?.includes('no-new-privileges:true')) faults.push('it may gain privileges')
  for (const option of service.security_opt ?? []) {
    if (!SECURITY_OPTIONS.includes(option)) faults.push(`${option} is not provided for`)
  }
  if (service.pids_limit === undefined) faults.push('it may start any number of processes')
  // The limit counts threads, and Go starts one for each call that blocks, as those to a disk do.
  else if (/\bkubo\b/.test(service.image) && service.pids_limit < 1024)
    faults.push('its limit is too low for its threads')
  // It ends when it has looked.
  const restart = isDoctor(toContainer('', service)) ? 'no' : 'unless-stopped'
  if (service.restart !== restart) faults.push('it does not come back, or comes back though it has ended')
  const isRootNeeded = service.volumes?.includes(`${CONFIGFS}:${CONFIGFS}`) ?? false
  // Docker's own profile forbids writing there; nobody else is to go without it.
  const isUnconfined = service.security_opt?.includes('apparmor=unconfined') ?? false
  if (isRootNeeded && !isUnconfined) faults.push('AppArmor keeps it from asking for reports')
  if (!isRootNeeded && isUnconfined) faults.push('it is without AppArmor, and without need')
  const user = service.user ?? ''
  if (!/^\d+:\d+$/.test(user)) faults.push('its user is not a number')
  if (/^0:/.test(user) && !isRootNeeded) faults.push('it is root without need')
  const limits = service.deploy?.resources?.limits
  if (limits?.cpus === undefined || limits.memory === undefined) faults.push('it has no limits')
  for (const key of Object.keys(service.environment ?? {})) {
    if (isSecretName(key)) faults.push(`${key} is a secret, and belongs into a file`)
  }
  return faults
}

function checkMounts(compose: Compose, service: ComposeService, { isThere }: ComposeContext): string[] {
  const faults: string[] = []
  const isText = [...(service.secrets ?? []), ...(service.volumes ?? [])].every((mount) => typeof mount === 'string')
  if (!isText) return ['what is put into it is not in the short form']
  for (const secret of service.secrets ?? [])
    if (!compose.secrets?.[secret]) faults.push(`there is no secret ${secret}`)
  for (const volume of service.volumes ?? []) {
    const [source = '', target = '', mode] = volume.split(':')
    if (isStandIn(target, source)) faults.push(`${target} is not that of the guest`)
    // It gives out the root secret.
    if (source === DSTACK_AGENT && imageOf(service) !== 'enclave') faults.push(`${source} is not for it`)
    if (source.startsWith('.')) {
      if (posix.normalize(source).startsWith('..')) faults.push(`${source} of the machine is open to it`)
      if (!isThere(source)) faults.push(`${source} is not there`)
      if (mode !== 'ro') faults.push(`${source} can be written to`)
    } else if (source.startsWith('/')) {
      if (!OF_THE_GUEST.includes(source)) faults.push(`${source} of the machine is open to it`)
    } else if (!Object.hasOwn(compose.volumes ?? {}, source)) faults.push(`there is no volume ${source}`)
  }
  return faults
}

function checkWaiting(compose: Compose, service: ComposeService): string[] {
  const faults: string[] = []
  if (!/^\d+s$/.test(service.stop_grace_period ?? '')) faults.push('it is not said how long it may take to stop')
  const owner = /^service:(.*)$/.exec(service.network_mode ?? '')?.[1]
  if (owner !== undefined && !compose.services[owner]) faults.push(`there is no service ${owner}`)
  for (const [name, { condition }] of Object.entries(service.depends_on ?? {})) {
    const other = compose.services[name]
    if (other === undefined) faults.push(`there is no service ${name}`)
    else if (condition === 'service_healthy' && imageOf(other) !== undefined) {
      // What waits is given up when its health is, and is not started later: a schema may take longer to migrate.
      faults.push(`${name} may take longer to start than its health waits`)
    } else if (condition === 'service_healthy' && other.healthcheck?.test === undefined) {
      faults.push(`${name} never says that it is healthy`)
    } else if (condition === 'service_completed_successfully' && !isDoctor(toContainer(name, other))) {
      faults.push(`${name} never ends`)
    }
  }
  return faults
}

export function toContainers(compose: Compose): Container[] {
  return Object.entries(compose.services).map(([name, service]) => toContainer(name, service))
}

function toContainer(where: string, service: ComposeService): Container {
  return {
    where,
    image: service.image,
    args: service.command ?? [],
    env: service.environment ?? {},
    mounts: [
      ...(service.secrets ?? []).map((secret) => `/run/secrets/${secret}`),
      ...(service.volumes ?? []).map((volume) => String(volume).split(':')[1] ?? ''),
    ],
  }
}

/** Puts values in as Compose does, after the file was parsed: `${NAME}`, `${NAME:?}` and `${NAME:-default}`. */
export function interpolate(value: unknown, env: Readonly<Record<string, string | undefined>>): unknown {
  if (Array.isArray(value)) return value.map((item) => interpolate(item, env))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, interpolate(member, env)]))
  }
  if (typeof value !== 'string') return value
  return value.replace(
    /\$\{(\w+)(?::([?-])([^}]*))?\}/g,
    (_, name: string, kind: string | undefined, fallback: string) => {
      const given = env[name]
      if (given !== undefined && given !== '') return given
      if (kind === '-') return fallback
      throw new Error(`${name} is not set`)
    },
  )
}
