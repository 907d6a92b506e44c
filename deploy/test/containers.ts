import { basename, posix } from 'node:path'
import { findUnmeasured } from '../../packages/service/src/readEnv.ts'
import { type LaunchedImage, launched, launchedBy } from '../launcher/launchers.ts'

/** A container of any kind of manifest. */
export type Container = {
  where: string
  image: string
  /** Arguments of the image's entry point. Empty: the image's default. */
  args: readonly string[]
  env: Readonly<Record<string, string>>
  /** Paths of mounted folders and files. */
  mounts: readonly string[]
}

/** Programs that read a configuration or serve requests. */
const programs = ['enclave', 'coordinator', 'worker', 'web'] as const
export type Program = (typeof programs)[number]

/** The image of ours that a container runs. */
export function imageOf({ image }: Pick<Container, 'image'>): LaunchedImage | undefined {
  // A reference may have a tag, a digest, or both.
  const name = /^countersign-([\w-]+)(:[^:@]*)?(@.*)?$/.exec(basename(image))?.[1] ?? ''
  return Object.hasOwn(launched, name) ? (name as LaunchedImage) : undefined
}

/** The program of ours that a container runs. Undefined for other images and for small scripts. */
export function programOf(container: Container): Program | undefined {
  const image = imageOf(container)
  if (image === undefined) return undefined
  return programs.find((name) => name === (container.args[0] ?? image))
}

/** Whether a container runs the doctor. */
export function isDoctor(container: Pick<Container, 'image' | 'args'>): boolean {
  return imageOf(container) === 'coordinator' && container.args[0] === 'doctor'
}

/** Whether an image has a version or a digest. `latest`, no tag or only a major version can change at any time. */
export function isPinned(image: string): boolean {
  return /@sha256:[0-9a-f]{64}$/.test(image) || /:v?\d+\.\d+[^:/]*$/.test(image)
}

/** Whether a variable's value belongs in a file. */
export function isSecretName(name: string): boolean {
  return /(SECRET|PASSWORD|PRIVATE_KEY|TOKEN|DATABASE_URL)$/.test(name) && name !== 'ROOT_SECRET'
}

/** Allowed mount points in our containers. No code is loaded from them, and they hide no measured files. */
const OPEN_PLACES = /^(\/run\/.+|\/backup|\/sys\/kernel\/config|\/var\/run\/dstack\.sock)$/

/** Input of a container that bypasses its image's launcher. */
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
