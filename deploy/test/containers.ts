import { basename, posix } from 'node:path'
import { findUnmeasured } from '../../packages/service/src/readEnv.ts'
import { type LaunchedImage, launched, launchedBy } from '../launcher/launchers.ts'

/** One container, whichever kind of manifest it comes from. */
export type Container = {
  where: string
  image: string
  /** What follows the image's entry point; empty where the image says it. */
  args: readonly string[]
  env: Readonly<Record<string, string>>
  /** Folders and files that are put into it. */
  mounts: readonly string[]
}

/** The programs that read a configuration, or serve. */
const programs = ['enclave', 'coordinator', 'worker', 'web'] as const
export type Program = (typeof programs)[number]

/** Which of our images a container runs. */
export function imageOf({ image }: Pick<Container, 'image'>): LaunchedImage | undefined {
  // A reference may have a tag, a digest, or both.
  const name = /^countersign-([\w-]+)(:[^:@]*)?(@.*)?$/.exec(basename(image))?.[1] ?? ''
  return Object.hasOwn(launched, name) ? (name as LaunchedImage) : undefined
}

/** Which of our programs a container runs; undefined for other people's images, and for small scripts. */
export function programOf(container: Container): Program | undefined {
  const image = imageOf(container)
  if (image === undefined) return undefined
  return programs.find((name) => name === (container.args[0] ?? image))
}

/** Whether a container checks a configuration, and ends. */
export function isDoctor(container: Pick<Container, 'image' | 'args'>): boolean {
  return imageOf(container) === 'coordinator' && container.args[0] === 'doctor'
}

/** Version or digest: `latest`, a bare name and a lone major number can be anything tomorrow. */
export function isPinned(image: string): boolean {
  return /@sha256:[0-9a-f]{64}$/.test(image) || /:v?\d+\.\d+[^:/]*$/.test(image)
}

/** Values of such names belong in files. */
export function isSecretName(name: string): boolean {
  return /(SECRET|PASSWORD|PRIVATE_KEY|TOKEN|DATABASE_URL)$/.test(name) && name !== 'ROOT_SECRET'
}

/** Where files may be put into our containers: no code is loaded from there, and nothing that was measured is covered. */
const OPEN_PLACES = /^(\/run\/.+|\/backup|\/sys\/kernel\/config|\/var\/run\/dstack\.sock)$/

/** What reaches a container from outside, other than what the launcher of its image lets through. */
export function findLaunchFaults(container: Container): string[] {
  const { args, env, mounts } = container
  const names = Object.keys(env)
  const image = imageOf(container)
  if (image === undefined) return findUnmeasured(env)
  const program = launchedBy(image, args[0])
  if (program === undefined) return [`no program ${args[0]}`]
  const isNamed = (name: string) =>
    program.env.some((one) => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : one === name))
  return [
    ...(args.length > 1 && !program.takesArguments ? args.slice(1) : []),
    ...names.filter((name) => !isNamed(name) || isSecretName(name)),
    ...mounts.filter((mount) => !OPEN_PLACES.test(posix.normalize(mount))),
  ]
}
